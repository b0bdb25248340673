// SPDX-License-Identifier: LGPL-2.1-or-later
// The pods that an arm makes are cut of the target's CPUs. No event tells of a mask.
#include <gmock/gmock.h>

#include "fake_trials.h"
#include "tuner/trials.h"

namespace wq {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class TrialsMasks : public test::TrialRig {
  protected:
    TrialsMasks() { counters_.more = {{"kcryptd", 100'000}}; }  // the other one has no turn
    // In the second window of the third pair.
    void into_a_trial() {
        wait_for_traffic();
        for (int i = 0; i < 5 * 2 + 3; i++) step();
        ASSERT_EQ(state("kcryptd"), State::trial);
    }
    void mask(const std::string& text) { tree_.write(test::wq_path("kcryptd", "cpumask"), text + "\n"); }
    void expect_cut_off(const std::string& why) {
        EXPECT_FALSE(trials_->due());
        EXPECT_FALSE(counters_.attached);
        ASSERT_THAT(verdicts_->records(), SizeIs(1));
        EXPECT_THAT(last().reason, HasSubstr(why));
        EXPECT_FALSE(last().judged);
        EXPECT_EQ(scope("kcryptd"), "default (cache)");
    }
};

TEST_F(TrialsMasks, AMaskThatIsRewrittenBetweenTicks) {
    into_a_trial();
    const auto before = asked();
    mask("000fff");
    step();
    step();
    expect_cut_off("its CPUs are 0-11 now, and were 0-23");
    EXPECT_EQ(asked(), before + 1) << "it is put back, and no window begins";
}

TEST_F(TrialsMasks, TheUnboundMaskIsRewritten) {
    into_a_trial();
    tree_.write("sys/devices/virtual/workqueue/cpumask", "00ffff\n");
    run();
    expect_cut_off("its CPUs are 0-15 now, and were 0-23");
}

TEST_F(TrialsMasks, AMaskThatIsRewrittenInTheLastWindow) {
    candidate_costs(2);
    wait_for_traffic();
    while (progress("kcryptd")->phase != "draining" || progress("kcryptd")->pair < 4) step();
    mask("000fff");
    step();
    expect_cut_off("its CPUs are 0-11 now");
}

TEST_F(TrialsMasks, AMaskThatIsSeenAtATick) {
    into_a_trial();
    mask("000fff");
    reconcile();
    expect_cut_off("its CPUs are 0-11 now, and were 0-23");
}

TEST_F(TrialsMasks, AMaskThatMeansTheSameDoesNot) {
    into_a_trial();
    mask("0");
    run();
    EXPECT_TRUE(last().judged);
}

TEST_F(TrialsMasks, AVerdictIsOfTheCpusItWasReachedOn) {
    candidate_costs(0.5);
    mask("000fff");
    wait_for_traffic();
    run();
    ASSERT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(last().key.cpus, "0-11");
    mask("ffffff");
    reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    mask("000fff");
    reconcile();
    EXPECT_EQ(state("kcryptd"), State::kept) << "it is not forgotten";
}

}  // namespace
}  // namespace wq
