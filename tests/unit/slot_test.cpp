// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/slot.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace wq {
namespace {

std::string name_of(SlotAction action) {
    switch (action) {
        case SlotAction::put:
            return "put";
        case SlotAction::open:
            return "open";
        case SlotAction::look:
            return "look";
        case SlotAction::close:
            return "close";
        case SlotAction::finish:
            return "finish";
    }
    return "?";
}

// "ms action window" of each action. Each action takes LATE ms.
std::vector<std::string> walk(const SlotTimes& times, std::uint64_t late = 0) {
    SlotClock clock(times, 0);
    std::vector<std::string> out;
    for (bool over = false; !over;) {
        over = clock.action() == SlotAction::finish;
        out.push_back(std::to_string(clock.due() / 1000) + " " + name_of(clock.action()) + " " +
                      std::to_string(clock.window()));
        clock.done(clock.due() + late * 1000);
    }
    return out;
}

TEST(SlotClock, BothWindowsBeginWithAChangeFromTheOtherArm) {
    EXPECT_THAT(walk({}), testing::ElementsAre("0 put 1", "500 put 0", "1000 open 0", "1300 look 0",
                                               "2500 close 0", "2500 put 1", "3000 open 1", "3300 look 1",
                                               "4500 close 1", "5000 finish 1"));
}

// The washout is counted from the return of the last write; a look that takes long makes no window longer.
TEST(SlotClock, ASlowActionDoesNotShortenWhatIsCounted) {
    EXPECT_THAT(walk({}, 100), testing::ElementsAre("0 put 1", "600 put 0", "1200 open 0", "1600 look 0",
                                                    "2800 close 0", "2900 put 1", "3500 open 1",
                                                    "3900 look 1", "5100 close 1", "5700 finish 1"));
}

TEST(SlotClock, AShortWindowIsLookedAtAtItsEnd) {
    EXPECT_THAT(walk({.window = 700'000}), testing::Contains("1200 look 0"));
}

TEST(SlotSize, WritesTakeNoMoreThanOnePercentOfAWindow) {
    const std::vector<std::uint64_t> writes(16, 1'000);
    EXPECT_EQ(size_of_slot(writes, 2'000'000, 16).targets, 16U);
    EXPECT_EQ(size_of_slot(writes, 2'000'000, 4).targets, 4U);
    EXPECT_EQ(size_of_slot(writes, 500'000, 16).targets, 5U);
    EXPECT_EQ(size_of_slot({15'000, 1'000, 9'000, 1}, 2'000'000, 16).targets, 2U);
}

TEST(SlotSize, ASingleTargetWithSlowWritesGetsALongerWindow) {
    EXPECT_EQ(size_of_slot({50'000, 1'000}, 2'000'000, 16).targets, 1U);
    EXPECT_EQ(size_of_slot({50'000, 1'000}, 2'000'000, 16).window, 5'000'000U);
    EXPECT_EQ(size_of_slot({900'000}, 2'000'000, 16).window, kLongestWindow);
    EXPECT_EQ(size_of_slot({1}, 2'000'000, 16).window, 2'000'000U);
    EXPECT_EQ(size_of_slot({900'000}, 60'000'000, 16).window, 60'000'000U)
        << "what the policy asks for is not cut";
    EXPECT_EQ(size_of_slot({}, 2'000'000, 16).targets, 0U);
}

}  // namespace
}  // namespace wq
