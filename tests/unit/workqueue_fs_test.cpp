// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/workqueue_fs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <tuple>

#include "fake_machine.h"

namespace wq {
namespace {

using test::File;
using test::kernel_tree;
using test::TempTree;
using test::workqueue;
using test::wq_path;
using testing::HasSubstr;
using testing::StartsWith;

// One workqueue, "a", made of FILES.
TempTree tree_of(const test::WorkqueueFiles& files) {
    return TempTree(kernel_tree({workqueue("a", files)}));
}

std::string untouchable(const TempTree& tree) {
    const auto read = WorkqueueFs(Paths{tree.root()}).read("a");
    return read ? read->untouchable : "not readable: " + read.error().text;
}

TEST(WorkqueueFs, ReadsAWorkqueue) {
    const TempTree tree(kernel_tree({workqueue("kcryptd-254:0-1", {.cpumask = "0f", .strict = "1"})}));
    const auto w = WorkqueueFs(Paths{tree.root()}).read("kcryptd-254:0-1");
    ASSERT_TRUE(w) << w.error().text;
    EXPECT_EQ(w->name, "kcryptd-254:0-1");
    EXPECT_EQ(w->kind, Kind::unbound);
    EXPECT_EQ(w->scope, (ScopeFile{"default", Scope::cache}));
    EXPECT_EQ(w->strict, true);
    EXPECT_EQ(w->effective.list(), "0-3");
    EXPECT_EQ(w->untouchable, "");
    struct stat st = {};
    ASSERT_EQ(::stat(tree.path("sys/devices/virtual/workqueue/kcryptd-254:0-1").c_str(), &st), 0);
    EXPECT_EQ(w->inode, st.st_ino);
}

TEST(WorkqueueFs, ReadsTheDefault) {
    const TempTree tree(kernel_tree({}, "cache_shard", "8", "3f"));
    const auto w = WorkqueueFs(Paths{tree.root()}).read(kDefaultTarget);
    ASSERT_TRUE(w);
    EXPECT_EQ(w->kind, Kind::default_scope);
    EXPECT_EQ(w->scope, (ScopeFile{"cache_shard", Scope::cache_shard}));
    EXPECT_EQ(w->effective.list(), "0-5");
    EXPECT_EQ(w->strict, std::nullopt);
}

TEST(WorkqueueFs, CutsAMaskToTheUnboundMask) {
    const auto effective = [](const std::string& mask, const std::string& unbound) {
        const TempTree tree(kernel_tree({workqueue("a", {.cpumask = mask})}, "cache", "", unbound));
        return WorkqueueFs(Paths{tree.root()}).read("a")->effective.list();
    };
    EXPECT_EQ(effective("ff", "0f"), "0-3");
    EXPECT_EQ(effective("3c", "0f"), "2-3");
    EXPECT_EQ(effective("f0", "0f"), "0-3") << "what leaves nothing means all of it";
    EXPECT_EQ(effective("0", "0f"), "0-3");
    EXPECT_EQ(effective("1,00000000", "1,00000001"), "32");
}

TEST(WorkqueueFs, NamesWorkqueuesAndNothingElse) {
    TempTree tree(
        kernel_tree({workqueue("writeback"), workqueue("kcryptd"), test::Dir("power", {File("control")})}));
    const WorkqueueFs files(Paths{tree.root()});
    EXPECT_THAT(*files.names(), testing::ElementsAre("@default", "kcryptd", "writeback"));
    EXPECT_EQ(files.read("power").error().code, ENOENT) << "an order may name anything";
    tree.remove("sys/module");
    EXPECT_THAT(*files.names(), testing::ElementsAre("kcryptd", "writeback"));
    tree.remove("sys");
    EXPECT_THAT(*files.names(), testing::IsEmpty());
}

TEST(WorkqueueFs, TellsKindsThatAreNeverWritten) {
    EXPECT_THAT(untouchable(tree_of({.max_active = "1"})), HasSubstr("max_active is 1"));
    const TempTree ordered = tree_of({.max_active = "1", .max_active_mode = 0444});
    const auto w = WorkqueueFs(Paths{ordered.root()}).read("a");
    EXPECT_EQ(w->kind, Kind::ordered);
    EXPECT_THAT(w->untouchable, HasSubstr("ordered"));
    EXPECT_EQ(w->scope.word, "default") << "shown all the same";
    TempTree per_cpu = tree_of({});
    per_cpu.write(wq_path("a", "per_cpu"), "1\n");
    per_cpu.remove(wq_path("a"));
    EXPECT_EQ(WorkqueueFs(Paths{per_cpu.root()}).read("a")->kind, Kind::per_cpu);
}

// ---- absurd files

TEST(WorkqueueFs, SkipsAbsurdFilesWithAReason) {
    const std::string megabyte(1 << 20, 'f');
    const std::tuple<const char*, std::string, const char*> rows[] = {
        {"cpumask", megabyte, "cpumask: reading: File too large"},
        {"cpumask", "", "cpumask: not a CPU mask: empty"},
        {"cpumask", "0-3\n", "cpumask: not a CPU mask"},
        {"cpumask", "fff,,f\n", "cpumask: not a CPU mask"},
        {"cpumask", std::string("f\0f", 3), "cpumask: not a CPU mask"},
        {"max_active", "many\n", "max_active: not a number"},
        {"max_active", "", "max_active: not"},
        {"max_active", "99999999999\n", "max_active: not a number"},
        {"per_cpu", "no\n", "per_cpu: not a number"},
        {"affinity_strict", "yes\n", "affinity_strict:"},
        {"affinity_scope", "", "affinity_scope: not an affinity scope"},
        {"affinity_scope", "default cache\n", "after 'default'"},
        {"affinity_scope", "smt cache\n", "more than one word"},
        {"affinity_scope", "\x1b[31msmt\n", "not an affinity scope"},
        {"affinity_scope", megabyte, "affinity_scope: reading: File too large"}};
    for (const auto& [file, text, why] : rows) {
        TempTree tree = tree_of({});
        tree.write(wq_path("a", file), text);
        EXPECT_THAT(untouchable(tree), HasSubstr(why));
        EXPECT_LT(untouchable(tree).size(), 200U);
    }
}

TEST(WorkqueueFs, PlansNothingWithoutTheUnboundMaskOrScopeFiles) {
    TempTree tree = tree_of({});
    const WorkqueueFs files(Paths{tree.root()});
    const CpuSet mask = files.unbound_mask();
    ASSERT_FALSE(mask.empty());
    for (const char* text : {"", "garbage\n"}) {
        tree.write("sys/devices/virtual/workqueue/cpumask", text);
        EXPECT_THAT(untouchable(tree), HasSubstr("unbound cpumask"));
        EXPECT_THAT(files.read(kDefaultTarget)->untouchable, HasSubstr("unbound cpumask"));
    }
    tree.remove("sys/devices/virtual/workqueue/cpumask");
    EXPECT_THAT(untouchable(tree), HasSubstr("unbound cpumask"));
    EXPECT_EQ(files.read("a", mask)->effective, mask) << "one that was read once serves all targets";
    tree.remove(wq_path("a"));
    EXPECT_THAT(untouchable(tree), HasSubstr("affinity_scope"));
}

// ---- writing

class WorkqueueFsWrite : public testing::Test {
  protected:
    TempTree tree_ = tree_of({});
    WorkqueueFs files_{Paths{tree_.root()}};
    ino_t inode_ = files_.read("a")->inode;
};

TEST_F(WorkqueueFsWrite, WritesAWordAndALine) {
    ASSERT_TRUE(files_.write_scope("a", inode_, "smt"));
    EXPECT_EQ(tree_.read(wq_path("a")), "smt\n");
    EXPECT_EQ(files_.read_scope("a", inode_)->word, "smt");
    ASSERT_TRUE(files_.write_strict("a", inode_, true));
    EXPECT_EQ(tree_.read(wq_path("a", "affinity_strict")), "1\n");
    EXPECT_EQ(files_.read_strict("a", inode_), true);
    ASSERT_TRUE(files_.write_scope(kDefaultTarget, files_.read(kDefaultTarget)->inode, "numa"));
    EXPECT_EQ(tree_.read(test::kDefaultPath), "numa\n");
    EXPECT_EQ(files_.writes(), 3U);
}

TEST_F(WorkqueueFsWrite, RefusesAnotherWorkqueueOfTheSameName) {
    for (const auto& error :
         {files_.write_scope("a", inode_ + 1, "smt"), files_.write_strict("a", inode_ + 1, true)}) {
        ASSERT_FALSE(error);
        EXPECT_EQ(error.error().code, ENODEV);
    }
    EXPECT_EQ(files_.read_scope("a", inode_ + 1).error().code, ENODEV);
    EXPECT_EQ(files_.read_strict("a", inode_ + 1).error().code, ENODEV);
    EXPECT_EQ(tree_.read(wq_path("a")), "default (cache)\n");
    EXPECT_EQ(files_.writes(), 0U);
}

TEST_F(WorkqueueFsWrite, SaysWhichFileReadsAsNothingOrIsGone) {
    tree_.write(wq_path("a"), "");
    const auto read = files_.read_scope("a", inode_);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().text, StartsWith("a: affinity_scope: "));
    tree_.remove("sys/devices/virtual/workqueue/a");
    EXPECT_EQ(files_.read("a").error().code, ENOENT);
    EXPECT_EQ(files_.write_scope("a", inode_, "smt").error().code, ENOENT);
}

TEST_F(WorkqueueFsWrite, StaysInItsFolder) {
    tree_.add(workqueue("outside"));
    for (const std::string name : {"", ".", "..", "../../../../outside", "a/../a", "/a"}) {
        EXPECT_FALSE(files_.read(name)) << name;
        EXPECT_EQ(files_.write_scope(name, inode_, "smt").error().code, EINVAL) << name;
    }
    tree_.link("sys/devices/virtual/workqueue/link", "../../../../outside");
    EXPECT_FALSE(files_.read("link"));
    tree_.remove(wq_path("a"));
    tree_.link(wq_path("a"), tree_.path("outside/affinity_scope"));
    EXPECT_FALSE(files_.write_scope("a", inode_, "smt"));
    EXPECT_EQ(tree_.read("outside/affinity_scope"), "default (cache)\n");
    EXPECT_EQ(files_.writes(), 0U);
}

// ---- masks

constexpr const char* kFolder = "sys/devices/virtual/workqueue/";

class MaskFilesTest : public testing::Test {
  protected:
    void workqueue(const std::string& name, const std::string& max_active, mode_t mode = 0644) {
        const std::string folder = kFolder + name;
        tree_.write(folder + "/per_cpu", "0\n");
        tree_.write(folder + "/cpumask", "00ff\n");
        tree_.add(File(folder + "/max_active", max_active + "\n", mode));
    }
    void of_all(const std::string& file, const std::string& text) { tree_.write(kFolder + file, text); }
    [[nodiscard]] std::string untouchable(const std::string& name) {
        return files_.read_mask(name).value().untouchable;
    }

    TempTree tree_;
    WorkqueueFs files_{Paths{tree_.root()}};
};

TEST_F(MaskFilesTest, AWorkqueuesMaskIsReadAndWritten) {
    workqueue("a", "16");
    const auto read = files_.read_mask("a");
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(read->cpus.list(), "0-7");
    EXPECT_EQ(read->effective, read->cpus);
    EXPECT_EQ(read->text, "00ff");
    EXPECT_EQ(read->untouchable, "");
    ASSERT_TRUE(files_.write_mask("a", read->inode, "f3"));
    EXPECT_EQ(tree_.read(std::string(kFolder) + "a/cpumask"), "f3\n");
    EXPECT_EQ(files_.writes(), 1U);
    EXPECT_EQ(files_.write_mask("a", read->inode + 1, "1").error().code, ENODEV);
    EXPECT_EQ(files_.read_mask("b").error().code, ENOENT);
    EXPECT_FALSE(files_.read_mask("../a"));
}

TEST_F(MaskFilesTest, SomeAreLeftAlone) {
    workqueue("ordered", "1", 0444);
    workqueue("one", "1");
    tree_.write(std::string(kFolder) + "bound/per_cpu", "1\n");
    EXPECT_THAT(untouchable("ordered"), StartsWith("ordered"));
    EXPECT_EQ(untouchable("bound"), "per-CPU workqueues have no cpumask");
    EXPECT_THAT(untouchable("one"), StartsWith("max_active is 1"));
}

TEST_F(MaskFilesTest, TheMaskOfAllIsWhatWasRequested) {
    of_all("cpumask", "f3\n");
    EXPECT_THAT(untouchable(kDefaultMask), StartsWith("not written before Linux 6.8"));
    of_all("cpumask_requested", "ff\n");
    of_all("cpumask_isolated", "0c\n");
    const auto read = files_.read_mask(kDefaultMask);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(read->cpus.list(), "0-7");
    EXPECT_EQ(read->effective.list(), "0-1,4-7");
    EXPECT_EQ(read->text, "ff");
    EXPECT_EQ(read->untouchable, "");
    EXPECT_EQ(read->isolated.list(), "2-3");
    ASSERT_TRUE(files_.write_mask(kDefaultMask, read->inode, "3f"));
    EXPECT_EQ(tree_.read(std::string(kFolder) + "cpumask"), "3f\n");
    of_all("cpumask", "x\n");
    of_all("cpumask_requested", "x\n");
    EXPECT_THAT(files_.read_mask(kDefaultMask).error().text, HasSubstr("cpumask"));
}

TEST_F(MaskFilesTest, TheMaskOfAllIsLeftAloneWhereAWriteStallsOrderedWorkqueues) {
    of_all("cpumask", "ff\n");
    of_all("cpumask_requested", "ff\n");
    const auto may_write = [&](const std::string& release) {
        tree_.write("proc/sys/kernel/osrelease", release + "\n");
        return untouchable(kDefaultMask).empty();
    };
    for (const char* release :
         {"6.8.0-45-generic", "6.12.82", "6.12.107+deb13-amd64", "6.18.23", "7.0.0", "7.2.13"})
        EXPECT_TRUE(may_write(release)) << release;
    for (const char* release : {"6.9", "6.12.0-124.el10.x86_64", "6.12.81", "6.17.4", "6.18.22", "6.19.3"})
        EXPECT_FALSE(may_write(release)) << release;
}

}  // namespace
}  // namespace wq
