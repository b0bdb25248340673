// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/control_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "temp_tree.h"
#include "verdict_files.h"

namespace wq::ctl {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class CompareCommand : public testing::Test {
  protected:
    void keep(const std::string& target, std::int64_t time) {
        VerdictRecord record;
        record.key = test::key_of("kcryptd-#");
        record.target = target;
        record.time = time;
        ASSERT_TRUE(test::keep(store_, record));
    }
    [[nodiscard]] Result<VerdictRecord> wait(milliseconds limit) const {
        return wait_for_verdict(store_.path(), "kcryptd-1", 1000, limit);
    }

    test::TempTree tree_{test::Dir("var/lib/wq-tuned")};
    VerdictStore store_{tree_.path("var/lib/wq-tuned/verdicts.log")};
};

TEST_F(CompareCommand, TheVerdictMayComeLaterThanTheEnd) {
    keep("kcryptd-1", 999);
    std::thread daemon([this] {
        std::this_thread::sleep_for(milliseconds(500));
        keep("kcryptd-1", 1000);
        keep("kcryptd-2", 1001);
    });
    const auto record = wait(milliseconds(20'000));
    daemon.join();
    ASSERT_TRUE(record) << record.error().text;
    EXPECT_EQ(record->time, 1000);
}

TEST_F(CompareCommand, NobodyWaitsForEverForOne) {
    EXPECT_THAT(wait(milliseconds(0)).error().text, HasSubstr("no verdict was saved"));
    keep("kcryptd-1", 999);
    keep("kcryptd-2", 1000);
    EXPECT_THAT(wait(milliseconds(0)).error().text, HasSubstr("no verdict was saved"));
}

TEST_F(CompareCommand, AStoreThatCannotBeReadIsSaidAtOnce) {
    tree_.write("var/lib/wq-tuned/verdicts.log", "{}\n");
    EXPECT_THAT(wait(milliseconds(20'000)).error().text, HasSubstr("verdicts.log"));
}

}  // namespace
}  // namespace wq::ctl
