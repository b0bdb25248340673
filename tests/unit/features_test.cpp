// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernel features found in BTF that the test generates.
#include "machine/kernel_info.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>

#include "fake_machine.h"

namespace wq {
namespace {

// Writes BTF of a kernel to a tree and reads its features.
class FeaturesTest : public testing::Test {
  protected:
    ~FeaturesTest() override { btf__free(types_); }

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

    static constexpr const char* kFile = "sys/kernel/btf/vmlinux";
    test::TempTree tree_;
    btf* types_ = btf__new_empty();
    int int_ = btf__add_int(types_, "int", 4, BTF_INT_SIGNED);
};

TEST_F(FeaturesTest, AreFoundInTheFunctions) {
    EXPECT_EQ(read(test::kernel_612()).cache_shard, false);
    EXPECT_EQ(read(test::kernel_72()).cache_shard, true);
    EXPECT_EQ(read(test::kernel_72()).pwlocks, false);
    add_function("pwlocks_setup");
    EXPECT_EQ(read(test::kernel_72()).pwlocks, true);
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
    EXPECT_EQ(read_features(Paths{tree_.root()}, test::kernel_72()).cache_shard, true);
    for (const char* broken : {"", "not BTF", "\x9f\xeb\x01"}) {
        tree_.write(kFile, broken);
        EXPECT_EQ(read_features(Paths{tree_.root()}, test::kernel_72()).pwlocks, std::nullopt) << broken;
    }
}

}  // namespace
}  // namespace wq
