// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernel features found in BTF that the test generates.
#include "machine/kernel_info.h"

#include <bpf/btf.h>
#include <gmock/gmock.h>

#include "fake_machine.h"
#include "machine/bpf_errors.h"
#include "machine/cpu_files.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::TempTree;
using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

// Writes BTF of a kernel to a tree and reads its features.
class FeaturesTest : public testing::Test {
  protected:
    ~FeaturesTest() override { btf__free(types_); }

    void add_enum(const std::vector<std::pair<std::string, int>>& values) {
        btf__add_enum(types_, "wq_affn_scope", 4);
        for (const auto& [name, value] : values) btf__add_enum_value(types_, name.c_str(), value);
    }
    void add_struct(const char* name, const std::vector<std::string>& members) {
        btf__add_struct(types_, name, 4 * static_cast<unsigned>(members.size()));
        for (std::size_t i = 0; i < members.size(); i++)
            btf__add_field(types_, members[i].c_str(), int_, 32 * static_cast<unsigned>(i), 0);
    }
    void add_function(const char* name) {
        const int proto = btf__add_func_proto(types_, int_);
        btf__add_func(types_, name, BTF_FUNC_STATIC, proto);
    }
    KernelFeatures read(const KernelInfo& kernel) {
        unsigned size = 0;
        const void* data = btf__raw_data(types_, &size);
        tree_.write(kFile, std::string(static_cast<const char*>(data), size));
        return read_features(Paths{tree_.root()}, kernel);
    }

    void start_anew() {
        btf__free(types_);
        types_ = btf__new_empty();
        int_ = btf__add_int(types_, "int", 4, BTF_INT_SIGNED);
    }

    static constexpr const char* kFile = "sys/kernel/btf/vmlinux";
    TempTree tree_;
    btf* types_ = btf__new_empty();
    int int_ = btf__add_int(types_, "int", 4, BTF_INT_SIGNED);
};

// The types of 6.12.107, of 7.2.13, and of what is to come.
TEST_F(FeaturesTest, AreFoundInTheTypes) {
    const auto found = [this](const KernelInfo& kernel) {
        const KernelFeatures f = read(kernel);
        return std::vector<std::optional<bool>>{f.cache_shard, f.exact_parsing, f.deferred_wakeups,
                                                f.pwlocks};
    };
    add_enum({{"WQ_AFFN_SMT", 2}, {"WQ_AFFN_CACHE", 3}, {"WQ_AFFN_NUMA", 4}});
    add_struct("worker_pool", {"lock", "cpu"});
    add_function("parse_affn_scope");
    EXPECT_THAT(found(test::kernel_612()), ElementsAre(false, false, false, false));
    start_anew();
    add_enum({{"WQ_AFFN_CACHE", 3}, {"WQ_AFFN_CACHE_SHARD", 4}, {"WQ_AFFN_NUMA", 5}});
    add_struct("worker_pool", {"lock", "cpu"});
    EXPECT_THAT(found(test::kernel_72()), ElementsAre(true, true, false, false));
    start_anew();
    add_struct("worker_pool", {"lock", "last_woken_worker"});
    add_struct("pw_struct", {"work", "cpu"});
    EXPECT_EQ(read(test::kernel_72()).deferred_wakeups, true);
    EXPECT_EQ(read(test::kernel_72()).pwlocks, true);
}

// linux/pwlocks.h defines the structure even without CONFIG_PWLOCKS; the function needs the option.
TEST_F(FeaturesTest, PwlocksAreMoreThanTheirName) {
    add_struct("pw_struct", {"work"});
    EXPECT_EQ(read(test::kernel_72()).pwlocks, false);
    add_function("pwlocks_setup");
    EXPECT_EQ(read(test::kernel_72()).pwlocks, true);
}

TEST_F(FeaturesTest, WhatTheTypesDoNotTellIsUnknown) {
    const KernelFeatures found = read(test::kernel_612());
    EXPECT_EQ(found.exact_parsing, std::nullopt) << "the parser is inlined, so BTF does not show it";
    EXPECT_EQ(found.deferred_wakeups, std::nullopt);
    // In this order the kernel could match prefixes too, so the names do not tell how it parses.
    add_enum({{"WQ_AFFN_CACHE_SHARD", 3}, {"WQ_AFFN_CACHE", 4}});
    EXPECT_EQ(read(test::kernel_72()).exact_parsing, std::nullopt);
}

TEST_F(FeaturesTest, SchedLevelsAreSeenByTheirFunctions) {
    const auto found = [&] {
        (void)read(test::kernel_612());
        return read_sched_levels(Paths{tree_.root()});
    };
    EXPECT_EQ(read_sched_levels(Paths{tree_.root()}), SchedLevels());
    EXPECT_EQ(found(), SchedLevels()) << "no functions at all";
    add_function("tl_pkg_mask");
    EXPECT_EQ(found(), (SchedLevels{false, false}));
    add_function("cpu_core_flags");
    EXPECT_EQ(found(), (SchedLevels{false, true}));
    add_function("cpu_cluster_flags");
    EXPECT_EQ(found(), (SchedLevels{true, true}));
}

TEST_F(FeaturesTest, NoTypesNoAnswers) {
    const auto all_unknown = [](const KernelFeatures& found) {
        return !found.exact_parsing && !found.deferred_wakeups && !found.pwlocks;
    };
    const KernelFeatures found = read_features(Paths{tree_.root()}, test::kernel_72());
    EXPECT_EQ(found.cache_shard, true);
    EXPECT_TRUE(all_unknown(found));
    for (const char* broken : {"", "not BTF", "\x9f\xeb\x01"}) {
        tree_.write(kFile, broken);
        EXPECT_TRUE(all_unknown(read_features(Paths{tree_.root()}, test::kernel_72()))) << broken;
    }
}

TEST(DeniedText, NamesTheCapabilitiesOnlyWhereTheyAreMissing) {
    const auto of = [](const std::string& effective, const char* user = "0") {
        return denied_text(std::string("Name:\twq-tunectl\nUid:\t0\t") + user +
                           "\t0\t0\nCapPrm:\t000001ffffffffff\nCapEff:\t" + effective +
                           "\nCapBnd:\t000001ffffffffff\n");
    };
    for (const char* lacking :
         {"0000000000000000", "0000008000000000", "0000004000000000", "000000400001fffe"})
        EXPECT_EQ(of(lacking), "BPF is denied (CAP_BPF and CAP_PERFMON are needed)") << lacking;
    EXPECT_THAT(of("0000000000000000", "1000"), EndsWith("needed); run it as root"));
    for (const char* all : {"000001ffffffffff", "000000c000000000", "0000000000200000"})
        EXPECT_THAT(of(all), StartsWith("the kernel refuses this program (EPERM: ")) << all;
    EXPECT_THAT(denied_text(""), StartsWith("BPF is denied"));
}

}  // namespace
}  // namespace wq
