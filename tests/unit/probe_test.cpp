// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/kernel_info.h"

#include <gmock/gmock.h>

#include "fake_rig.h"
#include "service/status.h"

namespace wq {
namespace {

using test::kernel_tree;
using test::TempTree;

KernelInfo probe(const TempTree& tree) {
    return probe_kernel(Paths{tree.root()});
}

KernelInfo with_cmdline(const std::string& line, const std::string& smt = "on") {
    TempTree tree(kernel_tree({}));
    tree.write("proc/cmdline", line + "\n");
    tree.write("sys/devices/system/cpu/present", "0-7\n");
    if (!smt.empty()) tree.write("sys/devices/system/cpu/smt/control", smt + "\n");
    return probe(tree);
}

TEST(Probe, FindsShardsByTheirParameter) {
    const KernelInfo info = probe(TempTree(kernel_tree({}, "cache_shard", "8")));
    EXPECT_EQ(info.release, "6.12.107") << "whatever the version says";
    EXPECT_THAT(info.scopes, testing::ElementsAre(Scope::cpu, Scope::smt, Scope::cache_shard, Scope::cache,
                                                  Scope::numa, Scope::system));
    EXPECT_EQ(info.cache_shard_size, 8U);
    EXPECT_EQ(info.default_scope(), Scope::cache_shard);
    EXPECT_EQ(probe(TempTree(kernel_tree({}, "cache_shard", "0"))).cache_shard_size, 1U) << "as the kernel";
}

TEST(Probe, FindsNoShardsWithoutIt) {
    for (const char* size : {"", "many", "8 cores", "-1", "99999999999"}) {
        const KernelInfo info = probe(TempTree(kernel_tree({}, "cache", size)));
        EXPECT_EQ(info.scopes, classic_scopes()) << size;
        EXPECT_EQ(info.cache_shard_size, std::nullopt);
        EXPECT_EQ(info.default_scope(), Scope::cache);
    }
}

TEST(Probe, FindsNoScopesOnAKernelWithoutTheParameter) {
    TempTree tree(kernel_tree({}));
    tree.remove("sys/module/workqueue/parameters");
    EXPECT_THAT(probe(tree).scopes, testing::IsEmpty());
    const TempTree nothing;
    EXPECT_THAT(probe(nothing).scopes, testing::IsEmpty());
    EXPECT_EQ(probe(nothing).release, "");
}

TEST(Probe, ReadsTheCommandLine) {
    EXPECT_TRUE(with_cmdline("ro wq_tuned=off quiet").switched_off);
    EXPECT_TRUE(with_cmdline("workqueue.default_affinity_scope=smt").default_on_cmdline);
    for (const char* line : {"", "ro quiet", "xwq_tuned=off", "wq_tuned=offline", "wq_tuned=on",
                             "init=/bin/sh -- wq_tuned=off workqueue.default_affinity_scope=smt"}) {
        EXPECT_FALSE(with_cmdline(line).switched_off) << line;
        EXPECT_FALSE(with_cmdline(line).default_on_cmdline) << line;
    }
}

TEST(Probe, FindsWhatKeptCpusOfflineAtBoot) {
    const struct {
        const char *line, *smt, *found;
    } rows[] = {{"quiet", "on", ""},
                {"nosmt", "on", "nosmt"},
                {"maxcpus=4", "on", "maxcpus=4"},
                {"nosmt=force", "forceoff", "nosmt=force"},
                {"maxcpus=0", "on", "maxcpus=0"},
                {"nosmt", "notsupported", ""},
                {"nosmt", "", ""},
                {"maxcpus=8", "on", ""},
                {"maxcpus=lots", "on", ""},
                {"-- nosmt", "on", ""}};
    for (const auto& row : rows)
        EXPECT_EQ(with_cmdline(row.line, row.smt).cpus_held_back, row.found) << row.line;
}

TEST(Probe, FindsMitigationsThatTurnedSmtOff) {
    for (const std::string word :
         {"mitigations=auto,nosmt", "mitigations=auto,nosmt;no_user_user", "mds=full,nosmt",
          "tsx_async_abort=full,nosmt", "l1tf=flush,nosmt", "l1tf=full", "l1tf=full,force"}) {
        for (const char* control : {"off", "forceoff", "2"})
            EXPECT_EQ(with_cmdline("quiet " + word + " ro", control).cpus_held_back, word) << control;
        for (const char* control : {"on", "notsupported", "notimplemented", ""})
            EXPECT_EQ(with_cmdline(word, control).cpus_held_back, "") << word << " did nothing: " << control;
    }
    for (const char* word : {"mitigations=auto", "mds=full", "mds=full,nosmtx", "l1tf=flush",
                             "mds=full,xnosmt", "l1tf", "nosmt=no", "mds=", "mds=,", "root=nosmt"})
        EXPECT_EQ(with_cmdline(word, "off").cpus_held_back, "") << word;
}

TEST(Probe, ReadsParametersAsTheKernelDoes) {
    for (const char* line :
         {"workqueue.default-affinity-scope=smt", "workqueue.default_affinity-scope=smt",
          "\"workqueue.default_affinity_scope=smt\"", "workqueue.default_affinity_scope=\"smt\"",
          "ro\nworkqueue.default_affinity_scope=smt"})
        EXPECT_TRUE(with_cmdline(line).default_on_cmdline) << line;
    for (const char* line : {"wq-tuned=off", "wq_tuned=\"off\"", "\"wq_tuned=off\"", "ro\twq_tuned=off",
                             "a=\"b c\" wq_tuned=off", "wq_tuned=\"off"})
        EXPECT_TRUE(with_cmdline(line).switched_off) << line;
    EXPECT_FALSE(with_cmdline("a=\"b wq_tuned=off\"").switched_off) << "part of a value";
    EXPECT_FALSE(with_cmdline("a=\"b -- \" quiet").switched_off);
    EXPECT_TRUE(with_cmdline("a=\"b -- c\" wq_tuned=off").switched_off);
    EXPECT_EQ(with_cmdline("maxcpus=\"4\"").cpus_held_back, "maxcpus=4");
    EXPECT_EQ(with_cmdline("nosmt=\"force\"").cpus_held_back, "nosmt=force");
    EXPECT_EQ(with_cmdline("mds=\"full,nosmt\"", "off").cpus_held_back, "mds=full,nosmt");
}

// ---- a kernel before 6.6, from the probe to the engine

TEST(LacksScopes, NamesTheReleaseAndTheNeed) {
    KernelInfo kernel;
    kernel.release = "6.1.0-50-cloud-amd64";
    EXPECT_EQ(lacks_scopes(kernel),
              "Linux 6.1.0-50-cloud-amd64 has no affinity scopes: 6.6 or later is needed");
    kernel.scopes = classic_scopes();
    EXPECT_EQ(lacks_scopes(kernel), "");
}

// Detected by feature: a workqueue with the file, or the module parameter.
TEST(LacksScopes, MakesNoTargets) {
    test::TempTree tree(test::kernel_tree({test::workqueue("a"), test::workqueue("b")}));
    const WorkqueueFs files(Paths{tree.root()});
    tree.remove(test::wq_path("a", "affinity_scope"));
    EXPECT_EQ(files.names()->size(), 3U);
    tree.remove(test::kDefaultPath);
    EXPECT_EQ(files.names()->size(), 2U) << "b has a scope";
    tree.remove(test::wq_path("b", "affinity_scope"));
    EXPECT_TRUE(files.names()->empty());
}

class OldKernel : public test::Rig {
  protected:
    OldKernel() : Rig(KernelInfo{}) {
        tree_.remove(test::kDefaultPath);
        for (const char* name : {"kcryptd", "writeback"})
            for (const char* file : {"affinity_scope", "affinity_strict"})
                tree_.remove(test::wq_path(name, file));
    }
};

TEST_F(OldKernel, IsLeftAloneQuietly) {
    parts_->engine.reconcile();
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_TRUE(log_.lines.empty());
    EXPECT_TRUE(parts_->targets.all().empty());
    EXPECT_THAT(summary_of(parts_->targets),
                testing::StartsWith("observing: this kernel has no affinity scopes: 6.6 or later is needed"));
    const auto pinned = parts_->orders.pin("kcryptd", "smt");
    ASSERT_FALSE(pinned);
    EXPECT_THAT(pinned.error().text, testing::HasSubstr("has no affinity scopes"));
    parts_->engine.restore_all();
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(OldKernel, WithoutAnyWorkqueueIsLeftAloneQuietly) {
    tree_.remove("sys");
    parts_->engine.reconcile();
    parts_->engine.restore_all();
    EXPECT_TRUE(parts_->targets.all().empty());
    EXPECT_TRUE(log_.lines.empty());
    EXPECT_THAT(summary_of(parts_->targets), testing::HasSubstr("no workqueues to tune"));
}

}  // namespace
}  // namespace wq
