// SPDX-License-Identifier: LGPL-2.1-or-later
// What the daemon leaves and what is restored, for each way to end it.
#include <gmock/gmock.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "service_rig.h"

namespace wq {
namespace {

using test::Daemon;
using test::ServiceTest;
using test::wq_path;
using testing::IsEmpty;

TEST_F(ServiceTest, KeepsTheSettingsAndTheEntriesWhereToldTo) {
    tree_.write(kPolicy, kKeep);
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(daemon.end(SIGTERM), 0);
    }
    EXPECT_EQ(scope(), "smt\n");
    EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
    EXPECT_TRUE(restore());
    EXPECT_EQ(scope(), "smt\n") << "ExecStopPost= obeys too";
    // The next daemon still knows the first baseline.
    tree_.write(kPolicy, kApply);
    Daemon daemon(tree_);
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default\n");
    EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(ServiceTest, OnExitIsThatOfThePolicyInForceHoweverTheDaemonEnds) {
    for (const int signal : {SIGTERM, SIGKILL}) {
        tree_.write(kPolicy, kKeep);
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        tree_.write(kPolicy, "[daemon\n");  // not in force, and broken
        (void)daemon.end(signal);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "smt\n");
        tree_.write(kPolicy, kApply);
        Daemon next(tree_);
        ASSERT_TRUE(eventually([&] { return !tree_.exists("run/wq-tuned/keep"); }));
        tree_.write(kPolicy, kKeep);  // not in force
        (void)next.end(signal);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n");
    }
}

TEST_F(ServiceTest, WhenAllIsPutBackThePolicyDoesNotCount) {
    tree_.write(kPolicy, kKeep);
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    const auto beside = restore_after_exit({tree_.root(), true});
    ASSERT_FALSE(beside);
    EXPECT_EQ(beside.error().code, EWOULDBLOCK) << "nothing is put back, and that is said";
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "smt\n");
    EXPECT_TRUE(restore_after_exit({tree_.root(), true}));
    EXPECT_EQ(scope(), "default\n");
    EXPECT_THAT(entries(), IsEmpty());
}

// The daemon calls mark_restart() when systemd tells it of a restart; a tree has no systemd.
TEST_F(ServiceTest, ARestartLeavesTheSettingsOnceAndOnlyWhereTheDaemonEndedWell) {
    const Paths paths{tree_.root()};
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    (void)daemon.end(SIGKILL);
    for (const char* result : {"success", "exit-code", ""}) {
        tree_.write(wq_path("kcryptd"), "smt\n");
        OwnedStore store(paths.owned());
        ASSERT_TRUE(store.load());
        store.put({"kcryptd",
                   inode_of("kcryptd"),
                   {Knob::scope, "default", {"smt"}},
                   Attribute{Knob::strict, "0"}});
        ASSERT_TRUE(store.save());
        ASSERT_TRUE(mark_restart(paths, true));
        ::setenv("SERVICE_RESULT", result, 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), std::string(result) == "success" ? "smt\n" : "default\n") << result;
        EXPECT_FALSE(tree_.exists("run/wq-tuned/restart"));
        ::setenv("SERVICE_RESULT", "success", 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n") << "the mark is for one end";
    }
    ::unsetenv("SERVICE_RESULT");
}

TEST_F(ServiceTest, AMarkOfAnEarlierRestartDoesNotOutliveAStart) {
    tree_.add(test::File("run/wq-tuned/restart"));
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_FALSE(tree_.exists("run/wq-tuned/restart"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, TheSwitchGoesBeforeKeepAtTheEnd) {
    tree_.write(kPolicy, kKeep);
    for (const int signal : {SIGTERM, SIGKILL}) {
        tree_.remove("etc/wq-tuned/disabled");
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        tree_.write("etc/wq-tuned/disabled", "");
        (void)daemon.end(signal);
        EXPECT_EQ(scope(), signal == SIGTERM ? "default\n" : "smt\n");
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n");
        EXPECT_THAT(entries(), IsEmpty());
    }
}

TEST_F(ServiceTest, IsCleanedUpAfterAKill) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGKILL), -SIGKILL);
    EXPECT_EQ(scope(), "smt\n");
    tree_.write(wq_path("writeback"), "numa\n");  // by an external writer
    const auto restored = restore();
    EXPECT_TRUE(restored) << restored.error().text;
    EXPECT_EQ(scope(), "default\n");
    EXPECT_EQ(tree_.read(wq_path("writeback")), "numa\n");
    EXPECT_THAT(entries(), IsEmpty());
    EXPECT_TRUE(restore()) << "a second time finds nothing to do";
}

TEST_F(ServiceTest, WhatCannotBePutBackIsCountedAndStaysOnRecord) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        ASSERT_TRUE(eventually([&] { return tree_.read(wq_path("writeback")) == "smt\n"; }));
    }  // kill -9
    tree_.remove(wq_path("kcryptd"));
    tree_.add(test::Dir(wq_path("kcryptd")));  // cannot be read or written
    const auto restored = restore();
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().text, "settings not restored: 1");
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
    EXPECT_EQ(tree_.read(wq_path("writeback")), "default\n");
}

}  // namespace
}  // namespace wq
