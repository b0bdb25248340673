// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include "fake_log.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::TempTree;

struct PauseTest : testing::Test {
    // The Pause of a daemon after its start.
    Pause started(const std::string& file = "var/lib/wq-tuned/paused") {
        Pause pause(tree.path(file), record, log);
        pause.load();
        return pause;
    }
    TempTree tree;
    WriteAtOnce record;
    test::FakeLog log;
};

TEST_F(PauseTest, LastsThroughARestartUntilItIsEnded) {
    Pause first = started();
    EXPECT_FALSE(first.is_set());
    first.set(true);
    EXPECT_TRUE(first.is_set());
    Pause second = started();
    EXPECT_TRUE(second.is_set());
    second.set(false);
    EXPECT_FALSE(second.is_set());
    EXPECT_FALSE(started().is_set());
    EXPECT_FALSE(tree.exists("var/lib/wq-tuned/paused"));
    EXPECT_EQ(log.at_least(LOG_WARNING), 0U);
}

TEST_F(PauseTest, AnOrderOfWhatIsSoIsNoNews) {
    Pause pause = started();
    pause.set(false);
    EXPECT_TRUE(log.lines.empty());
    pause.set(true);
    pause.set(true);
    EXPECT_EQ(log.lines.size(), 1U);
}

TEST_F(PauseTest, HoldsAndIsLoggedWhereItCannotBeRecorded) {
    tree.add(File("var", "no folder"));
    Pause pause(tree.path("var/paused"), record, log);
    pause.set(true);
    EXPECT_TRUE(pause.is_set());
    EXPECT_EQ(log.at_least(LOG_WARNING), 1U);
    EXPECT_THAT(log.lines.back().text,
                testing::HasSubstr("the order is in force only until the daemon ends"));
}

TEST_F(PauseTest, AFileThatCannotBeReadIsNone) {
    tree.add(Dir("paused"));
    EXPECT_FALSE(started("paused").is_set());
    EXPECT_EQ(log.at_least(LOG_WARNING), 1U);
}

}  // namespace
}  // namespace wq
