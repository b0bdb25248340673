// SPDX-License-Identifier: LGPL-2.1-or-later
// How a trial that runs is shown: by the status document, and from that to people.
#include "ctl/render/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"
#include "ctl/render/progress_line.h"
#include "fake_trials.h"
#include "service/status.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ProgressTest : public test::TrialRig {
  protected:
    [[nodiscard]] json trial_of(const std::string& name) const {
        const json status = status_json(*tuner_, trials_.get(), "running");
        for (const json& target : status.at("targets"))
            if (target.at("name") == name) return target.at("trial");
        return "no such target";
    }
};

TEST_F(ProgressTest, OfNoTrialIsNull) {
    EXPECT_TRUE(trial_of("kcryptd").is_null());
}

TEST_F(ProgressTest, BeforeTheFirstPairThereIsNoEffect) {
    wait_for_traffic();
    const json trial = trial_of("kcryptd");
    EXPECT_EQ(trial.at("baseline"), "cache");
    EXPECT_EQ(trial.at("candidate"), "smt");
    EXPECT_EQ(trial.at("phase"), "washout");
    EXPECT_TRUE(trial.at("effect_percent").is_null());
    EXPECT_TRUE(trial.at("interval_percent").is_null());
    EXPECT_EQ(ctl::progress_text(trial), "pair 1 of 16, washout");
}

TEST_F(ProgressTest, EffectAndEvidenceGrowWithThePairs) {
    candidate_costs(1.01);
    wait_for_traffic();
    for (int i = 0; i < 5 * 2; i++) step();  // two pairs of five timers
    const json trial = trial_of("kcryptd");
    EXPECT_EQ(trial.at("pair"), 3);
    EXPECT_EQ(trial.at("counter"), "latency");
    EXPECT_NEAR(trial.at("effect_percent").get<double>(), 1, 0.01);
    EXPECT_GT(trial.at("e_regressed").get<double>(), 1);
    EXPECT_THAT(ctl::progress_text(trial), StartsWith("pair 3 of 16, washout; latency +1.0% so far, E "));
    EXPECT_THAT(ctl::progress_text(trial), Not(HasSubstr("dropped")));
}

TEST(ProgressText, TellsWhatWasDroppedAndWhyItWaits) {
    EXPECT_EQ(
        ctl::progress_text(
            {{"pair", 2}, {"max_pairs", 16}, {"phase", "waiting"}, {"dropped", 1}, {"reason", "no load"}}),
        "pair 2 of 16, waiting; 1 dropped; no load");
}

TEST(ProgressLine, OnATerminalIsOneLineHoweverNarrow) {
    int ends[2];
    const winsize size{24, 40, 0, 0};
    ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size), 0);
    const Fd master(ends[0]);
    const Fd before(::dup(STDERR_FILENO));
    ::dup2(ends[1], STDERR_FILENO);
    {
        ctl::ProgressLine line;
        line.show("one");
        line.show("one");
        line.show(std::string(60, 'x'));
        line.end();
    }
    ::dup2(before.get(), STDERR_FILENO);
    ::close(ends[1]);
    // Not all of it need be there at once; the end is EIO.
    std::string shown;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(master.get(), part.data(), part.size())) > 0;)
        shown.append(part.data(), static_cast<std::size_t>(n));
    EXPECT_EQ(shown, "\r\033[K\033[?7lone\033[?7h\r\033[K\033[?7l" + std::string(60, 'x') + "\033[?7h\r\n");
}

}  // namespace
}  // namespace wq
