// SPDX-License-Identifier: LGPL-2.1-or-later
// The mask files, and the CPUs that masks may contain, read from a tree of kernel files.
#include "machine/workqueue_fs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "machine/isolation.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFolder = "sys/devices/virtual/workqueue/";
constexpr const char* kCpus = "sys/devices/system/cpu/";
constexpr const char* kCgroups = "sys/fs/cgroup/";

class MaskFilesTest : public testing::Test {
  protected:
    void workqueue(const std::string& name, const std::string& max_active, mode_t mode = 0644) {
        const std::string folder = kFolder + name;
        tree_.write(folder + "/per_cpu", "0\n");
        tree_.write(folder + "/cpumask", "00ff\n");
        tree_.add(test::File(folder + "/max_active", max_active + "\n", mode));
    }
    void of_all(const std::string& file, const std::string& text) { tree_.write(kFolder + file, text); }
    [[nodiscard]] std::string untouchable(const std::string& name) {
        return files_.read_mask(name).value().untouchable;
    }
    [[nodiscard]] HostCpus now() const { return read_cpus_now(Paths{tree_.root()}); }
    [[nodiscard]] HostCpus at_boot() const { return read_boot_cpus(Paths{tree_.root()}); }

    test::TempTree tree_;
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

TEST_F(MaskFilesTest, IsolationNowAndAtBoot) {
    tree_.write(std::string(kCpus) + "possible", "0-7\n");
    tree_.write(std::string(kCpus) + "nohz_full", "7\n");
    tree_.write(std::string(kCpus) + "isolated", "2-3\n");  // only those of isolcpus=
    tree_.write(std::string(kCgroups) + "rt/cpuset.cpus.partition", "isolated\n");
    tree_.write(std::string(kCgroups) + "rt/cpuset.cpus.effective", "3-4\n");
    EXPECT_EQ(now().possible.list(), "0-7");
    EXPECT_EQ(now().isolated.list(), "2-4,7");
    EXPECT_EQ(at_boot().isolated.list(), "2-3,7") << "a partition may have CPUs of isolcpus=";
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "2-5\n");
    EXPECT_EQ(now().isolated.list(), "2-5,7") << "the kernel's list";
    EXPECT_EQ(at_boot().isolated.list(), "2-3,7");
}

TEST_F(MaskFilesTest, NoCpuIsPossibleWhereNotAllCgroupsWereRead) {
    tree_.write(std::string(kCpus) + "possible", "0-7\n");
    std::string path = kCgroups;
    for (int depth = 0; depth < 20; depth++) {
        path += "d/";
        tree_.write(path + "cpuset.cpus.partition", "member\n");
    }
    EXPECT_TRUE(now().possible.empty()) << "a cgroup further below may be an isolated partition";
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "1\n");
    EXPECT_EQ(now().possible.list(), "0-7") << "the kernel's list has all of them";
    EXPECT_EQ(now().isolated.list(), "1");
}

}  // namespace
}  // namespace wq
