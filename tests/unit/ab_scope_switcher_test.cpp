// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/scope_switcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "ctl/lab/arms.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "fake_scope_files.h"
#include "owned/restore.h"

namespace wq::ab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ScopeSwitcherTest : public testing::Test {
  protected:
    std::map<std::string, BaselineEntry> on_disk() {
        BaselineStore store(tree_.path("baseline.json"));
        EXPECT_TRUE(store.load());
        return store.entries();
    }
    // A switcher between ARMS for the target NAME, whose file holds WORD.
    ScopeSwitcher switcher(const std::string& name, const std::string& word, const std::string& arms,
                           const KernelInfo& kernel = test::kernel_612()) {
        Workqueue target;
        target.name = name;
        target.inode = 1;
        target.scope = {word, Scope::cache};
        if (name == kDefaultTarget)
            target.kind = Kind::default_scope;
        else
            target.strict = files_.files[name].strict;
        files_.files[name].word = word;
        return {files_, store_, target, *parse_arms(arms), kernel};
    }
    // Restores the scopes like the guardian.
    void put_back() {
        BaselineStore store(tree_.path("baseline.json"));
        ASSERT_TRUE(store.load());
        test::FakeLog log;
        EXPECT_EQ(restore_entries(files_, store, log, true), 0U);
        EXPECT_THAT(on_disk(), IsEmpty());
    }

    test::TempTree tree_;
    test::FakeScopeFiles files_;
    BaselineStore store_{tree_.path("baseline.json")};
};

TEST_F(ScopeSwitcherTest, TheBaselineIsOnDiskBeforeTheFirstWrite) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    bool seen = false;
    files_.before_write = [&] {
        const auto entries = on_disk();
        ASSERT_TRUE(entries.contains("kcryptd"));
        EXPECT_EQ(entries.at("kcryptd").scope, "default");
        EXPECT_EQ(entries.at("kcryptd").holder, Holder::slot);
        seen = true;
    };
    ASSERT_TRUE(s.to(0));
    EXPECT_TRUE(seen);
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "default");
}

TEST_F(ScopeSwitcherTest, WritesWhatIsInPlaceToo) {
    auto s = switcher("kcryptd", "smt", "smt,cache");
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_EQ(files_.writes(), 3U);
}

TEST_F(ScopeSwitcherTest, TheParameterGoesThroughAScopeOfNoArm) {
    auto s = switcher(kDefaultTarget, "cache", "cache,smt");
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    std::vector<std::string> writes;
    for (const std::string& call : files_.asked)
        if (call.starts_with("write")) writes.push_back(call.substr(call.rfind(' ') + 1));
    EXPECT_THAT(writes, ElementsAre("cpu", "cache", "cpu", "smt", "cpu", "smt"));
    files_.write_errors = {0, EPERM};  // the second write fails
    EXPECT_FALSE(s.to(0));
    EXPECT_EQ(files_.files[kDefaultTarget].word, "cpu");
    put_back();
    EXPECT_EQ(files_.files[kDefaultTarget].word, "cache");
}

TEST_F(ScopeSwitcherTest, AParameterOfWhichAllScopesAreArmsStillMoves) {
    auto s = switcher(kDefaultTarget, "cache", "cpu,smt,cache,numa,system");
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {2U, 2U, 0U, 4U, 4U}) ASSERT_TRUE(s.to(arm));
    std::string before = "cache";
    for (const std::string& call : files_.asked)
        if (call.starts_with("write")) {
            EXPECT_NE(call.substr(call.rfind(' ') + 1), before) << call;
            before = call.substr(call.rfind(' ') + 1);
        }
    EXPECT_EQ(files_.writes(), 10U);
}

TEST_F(ScopeSwitcherTest, AForeignWordStopsItAndStays) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    files_.files["kcryptd"].word = "numa";
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("an external writer wrote 'numa'"));
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "numa");
}

TEST_F(ScopeSwitcherTest, AnArmsOwnWordIsForeignWhereWeDidNotWriteItLast) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    files_.files["kcryptd"].word = "cache";
    ASSERT_FALSE(s.check());
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "cache") << "left as found";
}

TEST_F(ScopeSwitcherTest, BeforeTheFirstWriteTheBaselineIsExpected) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    files_.files["kcryptd"].word = "system";
    EXPECT_FALSE(s.to(0));
    EXPECT_EQ(files_.writes(), 0U);
}

TEST_F(ScopeSwitcherTest, AnotherWorkqueueOfThatNameIsLeftAlone) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    files_.files["kcryptd"] = {2, "default", false};
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("vanished"));
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "default");
    EXPECT_EQ(files_.writes(), 1U);
}

TEST_F(ScopeSwitcherTest, AMisparseIsAnErrorAndGoesBack) {
    files_.prefixes = true;
    auto s = switcher("kcryptd", "smt", "smt,cache_shard", test::kernel_72());
    ASSERT_TRUE(s.begin());
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("the kernel stored 'cache' instead of 'cache_shard'"));
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "smt");
}

TEST_F(ScopeSwitcherTest, ABusyKernelGetsThreeTries) {
    auto s = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(s.begin());
    files_.write_errors = {ENOMEM, ENOMEM, 0};
    EXPECT_TRUE(s.to(0));
    files_.write_errors = {ENOMEM, ENOMEM, ENOMEM};
    EXPECT_FALSE(s.to(1));
}

TEST_F(ScopeSwitcherTest, StrictnessIsWrittenAndPutBack) {
    for (const bool found : {false, true}) {
        files_.files["kcryptd"].strict = found;
        auto s = switcher("kcryptd", "default", "smt,smt:strict");
        ASSERT_TRUE(s.begin());
        ASSERT_TRUE(s.to(1));
        EXPECT_TRUE(files_.files["kcryptd"].strict);
        ASSERT_TRUE(s.to(0));
        EXPECT_FALSE(files_.files["kcryptd"].strict);
        ASSERT_TRUE(s.to(found ? 0 : 1));
        put_back();
        store_.remove("kcryptd");
        EXPECT_EQ(files_.files["kcryptd"].strict, found);
    }
}

TEST_F(ScopeSwitcherTest, ForeignStrictnessStaysWhileTheScopeGoesBack) {
    auto s = switcher("kcryptd", "default", "smt,smt:strict");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    files_.files["kcryptd"].strict = true;
    const auto to = s.to(0);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("an external writer wrote 'strict'"));
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "default");
    EXPECT_TRUE(files_.files["kcryptd"].strict);
}

TEST_F(ScopeSwitcherTest, AForeignScopeStaysWhileTheStrictnessGoesBack) {
    auto s = switcher("kcryptd", "default", "smt,smt:strict");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(1));
    files_.files["kcryptd"].word = "numa";
    const auto to = s.to(0);
    ASSERT_FALSE(to);
    EXPECT_THAT(to.error().text, HasSubstr("an external writer wrote 'numa'"));
    EXPECT_TRUE(on_disk().contains("kcryptd")) << "the strictness is ours";
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "numa");
    EXPECT_FALSE(files_.files["kcryptd"].strict);
}

TEST_F(ScopeSwitcherTest, AnArmsWordThatIsForeignStaysWhileTheStrictnessGoesBack) {
    auto s = switcher("kcryptd", "default", "smt,cache:strict");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(1));
    files_.files["kcryptd"].word = "smt";
    ASSERT_FALSE(s.check());
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "smt");
    EXPECT_FALSE(files_.files["kcryptd"].strict);
}

TEST_F(ScopeSwitcherTest, ForeignScopeAndStrictnessBothStay) {
    files_.files["kcryptd"].strict = true;
    auto s = switcher("kcryptd", "default", "smt,smt:strict");
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(1));
    files_.files["kcryptd"] = {1, "numa", false};
    ASSERT_FALSE(s.check());
    EXPECT_THAT(on_disk(), IsEmpty());
    put_back();
    EXPECT_EQ(files_.files["kcryptd"].word, "numa");
    EXPECT_FALSE(files_.files["kcryptd"].strict);
}

TEST_F(ScopeSwitcherTest, ASettingThatIsThereAlreadyIsNotTakenForTheBaseline) {
    auto first = switcher("kcryptd", "default", "smt,cache");
    ASSERT_TRUE(first.begin());
    auto second = switcher("kcryptd", "default", "smt,cache");
    EXPECT_FALSE(second.begin());
    EXPECT_EQ(files_.writes(), 0U);
}

TEST_F(ScopeSwitcherTest, NothingIsWrittenWhereTheBaselineCannotBeSaved) {
    store_ = BaselineStore(tree_.path("nowhere/baseline.json"));
    auto s = switcher("kcryptd", "default", "smt,cache");
    EXPECT_FALSE(s.begin());
    EXPECT_EQ(files_.writes(), 0U);
}

TEST(ParseArms, ReadsScopesAndStrictness) {
    const auto arms = parse_arms("cache,smt");
    ASSERT_TRUE(arms);
    EXPECT_THAT(*arms, ElementsAre(Arm{Scope::cache, "cache", {}}, Arm{Scope::smt, "smt", {}}));
    const auto strict = parse_arms("smt,smt:strict");
    ASSERT_TRUE(strict);
    EXPECT_THAT(*strict, ElementsAre(Arm{Scope::smt, "smt", false}, Arm{Scope::smt, "smt", true}));
    for (const char* bad : {"", "smt", "smt,", ",smt", "smt,smt", "smt,bogus", "smt,default",
                            "smt,cache:Strict", "smt,cache:strict:strict", "smt, cache"})
        EXPECT_FALSE(parse_arms(bad)) << bad;
}

TEST(ArmsToSweep, OneOfEachPartitionAgainstWhatIsInPlace) {
    const Topology machine = test::machine({.sockets = 2, .cores = 4, .threads = 2});
    const KernelInfo kernel = test::kernel_612();
    const Policy policy = test::rule_for_all();
    const std::vector<Workqueue> targets{test::unbound(machine, Scope::smt)};
    const auto lines = make_plan({machine, kernel, policy, targets, "", 8});
    const auto arms = arms_to_sweep(lines.front());
    ASSERT_TRUE(arms);
    std::vector<std::string> names;
    for (const Arm& arm : *arms) names.push_back(arm.name());
    EXPECT_THAT(names, ElementsAre("smt", "system", "numa", "cpu"));
    EXPECT_EQ(candidate_with(lines.front(), Scope::cache)->pools, 2U);
    const auto unknown = make_plan({machine, kernel, policy, targets, "offline CPUs: 3", 8});
    EXPECT_FALSE(arms_to_sweep(unknown.front()));
}

TEST(WhyNot, WhatMayNotBeTouched) {
    const Topology machine = test::machine({.cores = 4});
    PlanLine line;
    line.target = test::unbound(machine, Scope::cache);
    const auto arms = *parse_arms("smt,cache");
    EXPECT_EQ(why_not(line, arms, test::kernel_612()), "");
    EXPECT_EQ(why_not(line, *parse_arms("smt,cache_shard"), test::kernel_612()),
              "this kernel has no cache_shard");
    EXPECT_EQ(why_not(line, *parse_arms("smt,cache_shard"), test::kernel_72()), "");
    line.target.untouchable = "ordered";
    EXPECT_EQ(why_not(line, arms, test::kernel_612()), "ordered");
    line.target = test::default_target(machine, Scope::cache);
    EXPECT_EQ(why_not(line, arms, test::kernel_612()), "");
    EXPECT_NE(why_not(line, *parse_arms("smt,cache:strict"), test::kernel_612()), "");
    KernelInfo fixed = test::kernel_612();
    fixed.default_writable = false;
    EXPECT_NE(why_not(line, arms, fixed), "");
}

}  // namespace
}  // namespace wq::ab
