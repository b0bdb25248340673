// SPDX-License-Identifier: LGPL-2.1-or-later
// `explain NAME` for names that are not a target's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "ctl/options.h"
#include "fake_machine.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using test::Dir;
using test::File;
using test::Link;
using testing::HasSubstr;

struct Said {
    int code = 0;
    std::string out;
    std::string err;
};

// A file system on a volume (dm-1) on an encrypted disk (dm-0) on nvme0n1p3.
class Explain : public testing::Test {
  protected:
    Explain()
        : tree_(test::kernel_tree({test::workqueue("kcryptd-254:0-1"), test::workqueue("kcryptd-254:10-2"),
                                   test::workqueue("nvme-wq-10"), test::workqueue("nvme-wq-2"),
                                   test::workqueue("writeback")})) {
        tree_.add(test::cpu_tree({.cores = 8}));
        const std::string blocks = "sys/class/block/";
        tree_.add(Dir(blocks + "nvme0n1p3", {File("dev", "259:3\n"), Dir("holders", {Dir("dm-0")})}));
        tree_.add(Dir(blocks + "dm-0", {File("dev", "254:0\n"), File("dm/name", "luks\n"),
                                        Dir("slaves", {Dir("nvme0n1p3")}), Dir("holders", {Dir("dm-1")})}));
        tree_.add(Dir(blocks + "dm-1",
                      {File("dev", "254:1\n"), File("dm/name", "vg-data\n"), Dir("slaves", {Dir("dm-0")})}));
        tree_.add(Dir(blocks + "sdb", {File("dev", "8:16\n")}));
        tree_.add(Dir("dev/mapper", {Link("luks", "../dm-0")}));
        tree_.add(File("dev/dm-0"));
        tree_.add(File("proc/self/mountinfo",
                       "25 1 8:17 / / rw - ext4 /dev/sdb rw\n"
                       "30 25 0:40 /@ /mnt/data rw,noatime shared:1 master:2 - btrfs /dev/mapper/vg-data rw\n"
                       "31 25 0:41 / /net rw - nfs4 server:/export rw\n"));
        tree_.add(Dir("proc/17", {File("comm", "kworker/u16:3-events_unbound\n"),
                                  File("stat",
                                       "17 (kworker/u16:3-events_unbound) I 2 0 0 0 -1 69238880 0 0 0 0 "
                                       "0 0 0 0 20 0 1 0 1\n"),
                                  File("status", "Name:\tkworker\nCpus_allowed_list:\t0-3\n")}));
    }

    [[nodiscard]] Said explain(const std::string& name, bool as_json = false) const {
        ctl::Options options;
        options.root = tree_.root();
        options.json = as_json;
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        Said said;
        said.code = ctl::explain(options, name);
        said.out = testing::internal::GetCapturedStdout();
        said.err = testing::internal::GetCapturedStderr();
        return said;
    }

    test::TempTree tree_;
};

TEST_F(Explain, NamesThatPeopleKnow) {
    using Targets = std::vector<std::string>;
    const Targets crypt{"kcryptd-254:0-1"};
    const Targets by_default{"@default"};
    const struct {
        const char* name;
        const char* kind;
        const char* text;
        Targets targets;
    } kCases[] = {
        {"nfsiod", "workqueue", "nfsiod (NFS) has no folder", by_default},
        {"events_unbound", "workqueue", "only @default reaches it", by_default},
        {"btrfs-endio", "workqueue", "only @default reaches it", by_default},
        {"events", "workqueue", "per-CPU workqueue", {}},
        {"kworker/u16:3", "kworker", "unbound pool 16", {}},
        {"kworker/u16:3", "kworker", "may run on CPUs 0-3", {}},
        {"kworker/u16:3-events_unbound",
         "kworker",
         "events_unbound (the kernel's shared workqueue) has no folder",
         {}},
        {"kworker/u16:3+kcryptd-254:0-1", "kworker", "It runs work of kcryptd-254:0-1", crypt},
        {"kworker/3:1H-kblockd", "kworker", "A worker of CPU 3", {}},
        {"kworker/R-kcryptd-254:0-1", "kworker", "The rescuer of kcryptd-254:0-1", crypt},
        {"/dev/dm-0", "block device", "dm-0 (254:0), on nvme0n1p3 (259:3), below dm-1 (254:1).", crypt},
        {"dm-0", "block device", "dm-0 is the block device dm-0", crypt},
        {"/dev/mapper/luks", "block device", "dm-0 (254:0)", crypt},
        {"/dev/mapper/vg-data", "block device", "dm-1 (254:1), on dm-0 (254:0)", crypt},
        {"/dev/nvme0n1p3", "block device", "These targets serve it: kcryptd-254:0-1.", crypt},
        {"dm-10", "block device", "dm-10 is the block device dm-10.", {"kcryptd-254:10-2"}},
        {"/dev/sdb", "block device", "No target has the number", {}},
        {"/dev/sdb", "block device", "writeback writes the dirty pages", {}},
        {"/mnt/data", "mount point", "/mnt/data is btrfs on /dev/mapper/vg-data.", crypt},
        {"/mnt/data/", "mount point", "reaches the workqueues of btrfs: btrfs-*.", crypt},
        {"/net", "mount point", "nfsiod, rpciod, xprtiod", {}},
    };
    for (const auto& one : kCases) {
        SCOPED_TRACE(one.name);
        const Said said = explain(one.name, true);
        ASSERT_EQ(said.code, ctl::kOk) << said.err;
        const json answer = json::parse(said.out);
        EXPECT_EQ(answer["kind"], one.kind);
        std::string text;
        for (const std::string sentence : answer["text"]) text += sentence + " ";
        EXPECT_THAT(text, HasSubstr(one.text));
        Targets targets;
        for (const json& target : answer["targets"]) targets.push_back(target["name"]);
        EXPECT_EQ(targets, one.targets);
    }
}

TEST_F(Explain, TheTextFitsAndEndsWithTheTargets) {
    ::setenv("COLUMNS", "80", 1);
    const std::string text = explain("/mnt/data").out;
    ::unsetenv("COLUMNS");
    EXPECT_THAT(text, HasSubstr("/mnt/data is btrfs on /dev/mapper/vg-data.\n"));
    EXPECT_THAT(text, HasSubstr("\nkcryptd-254:0-1\n  kind       unbound\n"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(Explain, DefaultIsTheTarget) {
    EXPECT_EQ(json::parse(explain("default", true).out)["name"], "@default");
}

TEST_F(Explain, AWrongNameGetsANearOne) {
    const Said near = explain("writebak");
    EXPECT_EQ(near.code, ctl::kFailure);
    EXPECT_EQ(near.err, "wq-tunectl: writebak: no such target; did you mean \"writeback\"?\n");
    EXPECT_THAT(explain("foo").err, HasSubstr("no such target; `wq-tunectl plan` lists them"));
    EXPECT_EQ(explain("/dev/nothing").code, ctl::kFailure);
}

TEST_F(Explain, PlanSortsNamesAsNumbersDo) {
    ctl::Options options;
    options.root = tree_.root();
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::plan(options), ctl::kOk);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_LT(text.find("nvme-wq-2 "), text.find("nvme-wq-10 "));
    EXPECT_LT(text.find("kcryptd-254:0-1 "), text.find("kcryptd-254:10-2 "));
}

TEST_F(Explain, PlanJoinsEqualRowsOfMoreThan24Targets) {
    const auto plan = [&] {
        ctl::Options options;
        options.root = tree_.root();
        testing::internal::CaptureStdout();
        EXPECT_EQ(ctl::plan(options), ctl::kOk);
        return testing::internal::GetCapturedStdout();
    };
    for (int i = 0; i < 18; i++)
        tree_.add(Dir("sys/devices/virtual/workqueue", {test::workqueue("xfs-" + std::to_string(i))}));
    EXPECT_THAT(plan(), testing::Not(HasSubstr(" more ")));
    tree_.add(Dir("sys/devices/virtual/workqueue", {test::workqueue("xfs-18")}));
    EXPECT_THAT(plan(), HasSubstr("kcryptd-254:0-1 and 23 more "));
}

}  // namespace
}  // namespace wq
