// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include <cerrno>

#include "fake_log.h"
#include "fake_workqueue_files.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class RestoreAll : public testing::Test {
  protected:
    // A target that holds WORD; its baseline is `default`, our word `smt`.
    void add(const std::string& name, const std::string& word, ino_t inode = 1) {
        files_.files[name] = {inode, word, false};
        store_.put({name, 1, {Knob::scope, "default", {"smt"}}, Attribute{Knob::strict, "0"}});
        ASSERT_TRUE(store_.save());
    }
    // The entries that a later daemon would read.
    std::map<std::string, Owned> on_disk() {
        OwnedStore store(tree_.path("owned.json"));
        EXPECT_TRUE(store.load());
        return store.entries();
    }

    test::TempTree tree_;
    test::FakeWorkqueueFiles files_;
    test::FakeLog log_;
    OwnedStore store_{tree_.path("owned.json")};
};

TEST_F(RestoreAll, ForgetsWhatIsGoneOrBackQuietly) {
    add("back", "default");
    add("gone", "smt");
    add("reused", "smt", 2);
    files_.files.erase("gone");
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["reused"].word, "smt") << "another workqueue, which is not ours";
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(RestoreAll, KeepsWhatCouldNotBeRestoredAndSaysWhy) {
    add("a", "smt");
    add("b", "smt");
    files_.write_errors = {EPERM};  // for a, which is first
    EXPECT_EQ(restore_all(files_, store_, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(on_disk(), ElementsAre(Key("a")));
    EXPECT_EQ(on_disk().at("a").main.claim, std::vector<std::string>{"smt"});
    ASSERT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines[0].text, HasSubstr("a: not put back to 'default'"));
    EXPECT_EQ(log_.lines[0].priority, LOG_ERR);
    EXPECT_THAT(log_.lines[0].fields, testing::Contains(std::pair<std::string, std::string>("ERRNO", "1")));
}

TEST_F(RestoreAll, TriesABusyKernelThreeTimesAndAPermanentErrorOnce) {
    struct Case {
        std::vector<int> errors;
        unsigned left, writes;
    };
    for (const auto& [errors, left, writes] :
         {Case{{EBUSY, EAGAIN}, 0, 3}, Case{{EBUSY, EBUSY, EBUSY}, 1, 3}, Case{{EINVAL}, 1, 1}}) {
        files_ = {};
        add("a", "smt");
        files_.write_errors.assign(errors.begin(), errors.end());
        EXPECT_EQ(restore_all(files_, store_, log_), left);
        EXPECT_EQ(files_.writes().size(), writes);
        EXPECT_EQ(on_disk().size(), left);
    }
}

TEST_F(RestoreAll, SaysThatTheFileCouldNotBeWritten) {
    add("a", "smt");
    tree_.remove("owned.json");
    tree_.write("file", "");
    OwnedStore nowhere(tree_.path("file/owned.json"));
    nowhere.put({"a", 1, {Knob::scope, "default", {"smt"}}});
    nowhere.put({"b", 1, {Knob::scope, "default", {"smt"}}});
    files_.files["b"] = {1, "smt", false};
    files_.write_errors = {EPERM};
    EXPECT_EQ(restore_all(files_, nowhere, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(log_.lines.back().text, HasSubstr("owned.json"));
}

TEST_F(RestoreAll, HasOneOrderOfAllFiles) {
    for (const std::string name : {"a", "b", "@default"}) add(name, "smt");
    files_.files["a"].strict = true;
    store_.find("a")->strict->claim = {"1"};
    store_.find("b")->strict = Attribute{Knob::strict, "1", {"0"}};
    store_.find("@default")->strict.reset();
    for (const std::string name : {"@default_mask", "a"}) {
        files_.masks[name] = {1, "f"};
        store_.put({name, 1, {Knob::mask, "00ff", {"f"}}});
    }
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_THAT(files_.writes(), ElementsAre("strict a 0", "@default default", "a 00ff", "@default_mask 00ff",
                                             "a default", "b default", "strict b 1"));
    EXPECT_THAT(store_.all(), IsEmpty());
    EXPECT_EQ(log_.count(Event::restored), 3U);
    EXPECT_EQ(log_.count(Event::mask_restored), 2U);
}

// ---- masks

TEST_F(RestoreAll, SaysWhichIsolatedCpusAMaskLetsIn) {
    files_.masks["a"] = {1, "30", "", {2, 3}};
    store_.put({"a", 1, {Knob::mask, "000000ff", {"30"}}});
    EXPECT_EQ(restore_all(files_, store_, log_, true), 0U) << "a mask is kept";
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_THAT(log_.lines.back().text,
                HasSubstr("restored to CPUs 0-7; isolated CPUs 2-3 may get unbound work"));
}

TEST_F(RestoreAll, LeavesOrKeepsMasksAsItDoesScopes) {
    files_.masks = {{"a", {1, "1"}}, {"b", {2, "30"}}, {"c", {1, "30"}}};
    for (const std::string name : {"a", "b", "c"}) store_.put({name, 1, {Knob::mask, "ff", {"30"}}});
    files_.write_errors = {EPERM};
    EXPECT_EQ(restore_all(files_, store_, log_), 1U);
    EXPECT_THAT(files_.writes(), ElementsAre("c ff"));
    EXPECT_THAT(store_.entries(Knob::mask), ElementsAre(Key("c")));
    EXPECT_EQ(log_.lines[0].text, "a: cpumask holds CPUs 0, which an external writer wrote; left as it is");
    EXPECT_THAT(log_.lines[1].text, HasSubstr("c: cpumask not put back to CPUs 0-7"));
}

}  // namespace
}  // namespace wq
