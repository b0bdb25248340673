// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include <cerrno>

#include "fake_log.h"
#include "fake_scope_files.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class RestoreEntries : public testing::Test {
  protected:
    // A target that holds WORD; its baseline is `default`, our word `smt`.
    void add(const std::string& name, const std::string& word, ino_t inode = 1) {
        files_.files[name] = {inode, word, false};
        store_.put({name, 1, "default", false, {"smt"}, {}});
        ASSERT_TRUE(store_.save());
    }
    // The entries that a later daemon would read.
    std::map<std::string, BaselineEntry> on_disk() {
        BaselineStore store(tree_.path("baseline.json"));
        EXPECT_TRUE(store.load());
        return store.entries();
    }

    test::TempTree tree_;
    test::FakeScopeFiles files_;
    test::FakeLog log_;
    BaselineStore store_{tree_.path("baseline.json")};
};

TEST_F(RestoreEntries, PutsEverythingBackAndForgetsIt) {
    add("a", "smt");
    add("b", "smt");
    EXPECT_EQ(restore_entries(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["a"].word, "default");
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(log_.count(Event::restored), 2U);
    EXPECT_THAT(log_.lines.front().fields, testing::Contains(Key("WQ_WRITE_USEC")));
}

TEST_F(RestoreEntries, SaysNothingOfWhatWasBackAnyway) {
    add("a", "default");
    EXPECT_EQ(restore_entries(files_, store_, log_), 0U);
    EXPECT_EQ(files_.writes(), 0U);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(RestoreEntries, LeavesWhatIsForeignAndForgetsIt) {
    add("a", "numa");
    EXPECT_EQ(restore_entries(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["a"].word, "numa");
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(log_.count(Event::external), 1U);
}

TEST_F(RestoreEntries, ForgetsWhatIsGoneQuietly) {
    add("gone", "smt");
    add("reused", "smt", 2);
    files_.files.erase("gone");
    EXPECT_EQ(restore_entries(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["reused"].word, "smt") << "another workqueue, which is not ours";
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(RestoreEntries, KeepsWhatCouldNotBeRestoredAndSaysWhy) {
    add("a", "smt");
    add("b", "smt");
    files_.write_errors = {EPERM};  // for a, which is first
    EXPECT_EQ(restore_entries(files_, store_, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(on_disk(), ElementsAre(Key("a")));
    EXPECT_EQ(on_disk().at("a").may_hold, std::vector<std::string>{"smt"});
    ASSERT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines[0].text, HasSubstr("a: not put back to 'default'"));
    EXPECT_EQ(log_.lines[0].priority, LOG_ERR);
    EXPECT_THAT(log_.lines[0].fields, testing::Contains(std::pair<std::string, std::string>("ERRNO", "1")));
}

TEST_F(RestoreEntries, TriesABusyKernelThreeTimes) {
    add("a", "smt");
    files_.write_errors = {EBUSY, EAGAIN};
    EXPECT_EQ(restore_entries(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["a"].word, "default");
    EXPECT_EQ(files_.writes(), 3U);
}

TEST_F(RestoreEntries, GivesABusyKernelUpAfterThree) {
    add("a", "smt");
    files_.write_errors = {EBUSY, EBUSY, EBUSY};
    EXPECT_EQ(restore_entries(files_, store_, log_), 1U);
    EXPECT_EQ(files_.writes(), 3U);
    EXPECT_THAT(on_disk(), ElementsAre(Key("a")));
}

TEST_F(RestoreEntries, DoesNotTryAPermanentErrorAgain) {
    add("a", "smt");
    files_.write_errors = {EINVAL};
    EXPECT_EQ(restore_entries(files_, store_, log_), 1U);
    EXPECT_EQ(files_.writes(), 1U);
}

TEST_F(RestoreEntries, SaysThatTheFileCouldNotBeWritten) {
    add("a", "smt");
    tree_.remove("baseline.json");
    BaselineStore nowhere(tree_.path("no/such/folder/baseline.json"));
    nowhere.put({"a", 1, "default", false, {"smt"}, {}});
    nowhere.put({"b", 1, "default", false, {"smt"}, {}});
    files_.files["b"] = {1, "smt", false};
    files_.write_errors = {EPERM};
    EXPECT_EQ(restore_entries(files_, nowhere, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(log_.lines.back().text, HasSubstr("baseline.json"));
}

}  // namespace
}  // namespace wq
