// SPDX-License-Identifier: LGPL-2.1-or-later
// Two windows as the machine's counters show them. What work counts in them is in trials_test.cpp.
#include "tuner/window_pair.h"

#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq {
namespace {

// Else the timer's jitter would decide between them: evidence knows no scale.
TEST(PairMeasurement, WhereNothingHappenedBothWindowsAreTheSame) {
    const test::TempTree tree{
        test::Dir("proc/pressure", {test::File("io", "full avg10=0.00 avg60=0.00 avg300=0.00 total=77\n")})};
    const Meters meters{{{"psi:io.full"}}, nullptr, Paths{tree.root()}};
    PairMeasurement pair(meters, {});
    pair.open(0, 0);
    pair.close(0, 8'000'111, 8'000'000);
    pair.open(1, 10'000'000);
    pair.close(1, 18'000'333, 8'000'000);
    pair.finish({});
    EXPECT_EQ(pair.fault(), "");
    ASSERT_EQ(pair.pair().readings.size(), 1U);
    EXPECT_EQ(pair.pair().readings[0].baseline, pair.pair().readings[0].candidate);
    EXPECT_EQ(pair.pair().readings[0].baseline, 1e-6 / 8);
}

}  // namespace
}  // namespace wq
