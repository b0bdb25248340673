// SPDX-License-Identifier: LGPL-2.1-or-later
// Isolated CPUs as read from the files, and how status shows them.
#include "machine/isolation.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "service/status.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr const char* kCpus = "sys/devices/system/cpu/";
constexpr const char* kCgroups = "sys/fs/cgroup/";

class IsolationTest : public testing::Test {
  protected:
    [[nodiscard]] Isolation read() const { return read_isolation(Paths{tree_.root()}); }
    [[nodiscard]] HostCpus now() const { return read_cpus_now(Paths{tree_.root()}); }
    [[nodiscard]] HostCpus at_boot() const { return read_boot_cpus(Paths{tree_.root()}); }
    void cgroup(const std::string& path, const std::string& type, const std::string& cpus) {
        tree_.write(kCgroups + path + "/cpuset.cpus.partition", type + "\n");
        tree_.write(kCgroups + path + "/cpuset.cpus.effective", cpus + "\n");
    }
    // One text for each partition, such as "/rt=2-3 isolated".
    [[nodiscard]] std::vector<std::string> partitions() const {
        std::vector<std::string> out;
        for (const Partition& p : read().partitions)
            out.push_back(p.cgroup + "=" + p.cpus.list() + " " + p.type);
        return out;
    }
    test::TempTree tree_;
};

TEST_F(IsolationTest, ComesFromTheBootOptions) {
    EXPECT_TRUE(read().cpus().empty()) << "no files";
    EXPECT_THAT(read().partitions, testing::IsEmpty());
    EXPECT_TRUE(read().complete);
    tree_.write(std::string(kCpus) + "isolated", "4-5\n");
    tree_.write(std::string(kCpus) + "nohz_full", "6-7\n");
    EXPECT_EQ(read().isolcpus.list(), "4-5");
    EXPECT_EQ(read().nohz_full.list(), "6-7");
    EXPECT_EQ(read().cpus().list(), "4-7");
    for (const char* none : {"(null)\n", " (null)\n", "\n", ""}) {
        tree_.write(std::string(kCpus) + "nohz_full", none);
        EXPECT_TRUE(read().nohz_full.empty()) << none;
    }
}

TEST_F(IsolationTest, FindsValidPartitionsAlone) {
    cgroup("rt.slice", "isolated", "2-3");
    cgroup("batch.slice", "root", "4-5");
    cgroup("system.slice", "member", "0-7");
    cgroup("broken.slice", "isolated invalid (Cpu list in cpuset.cpus not exclusive)", "0-7");
    cgroup("late.slice", "root invalid", "0-7");
    cgroup("empty.slice", "root", "");
    cgroup("system.slice/a.service", "member", "0-7");
    cgroup("system.slice/a.service/remote", "isolated", "7");
    tree_.add(test::Dir("sys/fs/cgroup/user.slice"));  // without cpusets, so nobody looks below it
    cgroup("user.slice/impossible", "isolated", "1");
    cgroup("a\033[2J", "root", "1");
    EXPECT_THAT(partitions(),
                testing::UnorderedElementsAre("/batch.slice=4-5 root", "/rt.slice=2-3 isolated",
                                              "/system.slice/a.service/remote=7 isolated", "/a?[2J=1 root"));
}

TEST_F(IsolationTest, SaysSoWhereThereIsMoreThanItLooksAt) {
    std::string path;
    for (int depth = 0; depth < 20; depth++) {
        path += "/d";
        cgroup(path, "member", "0-7");
    }
    cgroup(path + "/rt", "isolated", "1");
    EXPECT_FALSE(read().complete);
    EXPECT_THAT(partitions(), testing::IsEmpty());
    // The kernel's list of isolated CPUs still contains it.
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "1\n");
    EXPECT_THAT(partitions(), testing::ElementsAre("=1 isolated"));
}

TEST_F(IsolationTest, CountsOnlyOnceWhatTheKernelListsToo) {
    tree_.write(std::string(kCpus) + "isolated", "6\n");
    cgroup("rt.slice", "isolated", "2-3");
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "2-3,6\n");
    EXPECT_THAT(partitions(), testing::SizeIs(1));
}

TEST_F(IsolationTest, IsolationNowAndAtBoot) {
    tree_.write(std::string(kCpus) + "possible", "0-7\n");
    tree_.write(std::string(kCpus) + "nohz_full", "7\n");
    tree_.write(std::string(kCpus) + "isolated", "2-3\n");  // only those of isolcpus=
    cgroup("rt", "isolated", "3-4");
    EXPECT_EQ(now().possible.list(), "0-7");
    EXPECT_EQ(now().isolated.list(), "2-4,7");
    EXPECT_EQ(at_boot().isolated.list(), "2-3,7") << "a partition may have CPUs of isolcpus=";
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "2-5\n");
    EXPECT_EQ(now().isolated.list(), "2-5,7") << "the kernel's list";
    EXPECT_EQ(at_boot().isolated.list(), "2-3,7");
}

TEST_F(IsolationTest, NoCpuIsPossibleWhereNotAllCgroupsWereRead) {
    tree_.write(std::string(kCpus) + "possible", "0-7\n");
    std::string path;
    for (int depth = 0; depth < 20; depth++) cgroup(path += "/d", "member", "0-7");
    EXPECT_TRUE(now().possible.empty()) << "a cgroup further below may be an isolated partition";
    tree_.write(std::string(kCgroups) + "cpuset.cpus.isolated", "1\n");
    EXPECT_EQ(now().possible.list(), "0-7") << "the kernel's list has all of them";
    EXPECT_EQ(now().isolated.list(), "1");
}

TEST(HostStatus, HasTheKeysThatScriptsRelyOn) {
    Isolation isolation;
    isolation.isolcpus = {4, 5};
    isolation.partitions = {{"/rt.slice", {2}, "isolated"}, {"", {7}, "isolated"}};
    EXPECT_EQ(isolation_json(isolation), json::parse(R"({
        "isolcpus": "4-5", "nohz_full": "", "partitions_complete": true,
        "partitions": [{"cgroup": "/rt.slice", "cpus": "2", "type": "isolated"},
                       {"cgroup": null, "cpus": "7", "type": "isolated"}]})"));
}

}  // namespace
}  // namespace wq
