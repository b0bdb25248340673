// SPDX-License-Identifier: LGPL-2.1-or-later
// How the status document shows comparisons, and how the commands print them from it.
#include "ctl/render/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "fake_experiment.h"
#include "service/status.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ProgressTest : public test::ExperimentRig {
  protected:
    [[nodiscard]] json status() const { return status_json(*engine_, experiment_.get(), "running"); }
    [[nodiscard]] json target_of(const std::string& name) const {
        const json document = status();
        for (const json& target : document.at("targets"))
            if (target.at("name") == name) return target;
        return json::object();
    }
    [[nodiscard]] json trial_of(const std::string& name) const { return target_of(name).at("comparison"); }
    [[nodiscard]] std::string summary() const { return ctl::comparisons_text(status(), wall_); }
};

TEST_F(ProgressTest, OfATargetThatIsNotComparedIsNull) {
    EXPECT_TRUE(trial_of("@default").is_null());
    EXPECT_TRUE(target_of("@default").at("outcome").is_null());
}

TEST_F(ProgressTest, BeforeTheFirstPairThereIsNoEffect) {
    const json trial = trial_of("kcryptd");
    EXPECT_EQ(trial.at("reference"), "cache");
    EXPECT_EQ(trial.at("candidate"), "smt");
    EXPECT_EQ(trial.at("course"), "dense");
    EXPECT_EQ(trial.at("pairs"), 0);
    EXPECT_EQ(trial.at("max_pairs"), 64);
    EXPECT_EQ(trial.at("budget_seconds"), 60);
    EXPECT_TRUE(trial.at("effect_percent").is_null());
    EXPECT_EQ(trial.at("phase"), "waiting");
    EXPECT_THAT(summary(), StartsWith("0 of 3 targets: nothing compared yet; "));
}

TEST_F(ProgressTest, ASlotIsBeingMeasuredOnAllThatTakePart) {
    ASSERT_TRUE(run_to_slot());
    EXPECT_EQ(trial_of("kcryptd").at("phase"), "measuring");
    EXPECT_EQ(trial_of("kcryptd").at("reason"), "");
    EXPECT_EQ(status().at("daemon").at("experiments").at("measuring"), 2);
    EXPECT_THAT(summary(), EndsWith("; measuring 2 now"));
}

TEST_F(ProgressTest, EvidenceGrowsAndTheVerdictIsCounted) {
    costs("smt", 0.8);
    for (int i = 0; i < 5; i++) run_slot();
    const json trial = trial_of("kcryptd");
    EXPECT_EQ(trial.at("pairs"), 5);
    EXPECT_EQ(trial.at("counter"), "latency");
    EXPECT_NEAR(trial.at("effect_percent").get<double>(), -20, 3);
    EXPECT_GT(trial.at("e_improved").get<double>(), 2);
    EXPECT_EQ(target_of("kcryptd").at("outcome"), "undecided");
    EXPECT_THAT(ctl::progress_text(trial, wall_),
                AllOf(HasSubstr(" to 1 that smt is better than cache, latency "),
                      HasSubstr("% better in 5 of 64 pairs; ")));
    ASSERT_TRUE(run_until([&] { return target_of("kcryptd").at("outcome") == "improved"; }));
    EXPECT_EQ(target_of("kcryptd").at("verdict").at("verdict"), "improved");
    EXPECT_EQ(status().at("daemon").at("experiments").at("reason"), nullptr);
    EXPECT_GT(status().at("daemon").at("experiments").at("pairs"), 5);
}

TEST_F(ProgressTest, WhatRegressedRestsAndIsCountedAsSuch) {
    use_traffic({"kcryptd"});
    costs("smt", 1.3);
    ASSERT_TRUE(run_until([&] { return target_of("kcryptd").at("outcome") == "regressed"; }));
    EXPECT_THAT(summary(), HasSubstr(" regressed; "));
}

TEST_F(ProgressTest, OneReasonForAllIsAtTheTop) {
    experiment_->pause(true);
    EXPECT_EQ(summary(), "0 of 3 targets: nothing compared yet; no pair now: paused by `wq-tunectl pause`");
    EXPECT_EQ(trial_of("kcryptd").at("reason"), "paused by `wq-tunectl pause`");
}

json trial_with(double better, double worse) {
    return {{"candidate", "smt"}, {"reference", "cache"}, {"e_improved", better}, {"e_regressed", worse}};
}

TEST(ProgressText, SaysTheOddsOfWhatIsMoreLikely) {
    EXPECT_EQ(ctl::odds_text(trial_with(12.3, 0.2)), "12 to 1 that smt is better than cache");
    EXPECT_EQ(ctl::odds_text(trial_with(0.1, 2)), "2 to 1 that smt is worse than cache");
    EXPECT_EQ(ctl::odds_text(trial_with(1.9, 1)), "smt against cache: no evidence yet");
    EXPECT_EQ(ctl::odds_text(trial_with(1e300, 0)), "more than 10000 to 1 that smt is better than cache");
}

TEST(ProgressText, SaysWhenTheNextPairComes) {
    json trial = trial_with(30, 0);
    trial.update({{"course", "watched"},
                  {"counter", "latency"},
                  {"effect_percent", -3.14},
                  {"interval_percent", {-5, -1.2}},
                  {"pairs", 70},
                  {"phase", "waiting"},
                  {"next_pair", 1240},
                  {"reason", "its next pair is not due"}});
    EXPECT_EQ(ctl::progress_text(trial, 1000),
              "watched: 30 to 1 that smt is better than cache, latency 3.1% better (1.2 to 5) in 70 pairs; "
              "next pair in 4 min");
    EXPECT_THAT(ctl::progress_text(trial, 2000), EndsWith("; next pair now"));
    trial.update({{"course", "dense"},
                  {"max_pairs", 64},
                  {"pairs", 1},
                  {"next_pair", nullptr},
                  {"reason", "not busy"}});
    EXPECT_THAT(ctl::progress_text(trial, 1000),
                EndsWith(", latency 3.1% better (1.2 to 5) in 1 of 64 pairs; waits: not busy"));
    trial.update(
        {{"course", "resting"}, {"pairs", 1}, {"next_pair", 1000 + 29 * 86400}, {"reason", "it regressed"}});
    EXPECT_THAT(ctl::progress_text(trial, 1000),
                EndsWith(" in 1 pair; rests (it regressed), next pair in 29 days"));
}

TEST(ProgressText, TheSummaryCountsOutcomes) {
    json document = {
        {"daemon", {{"experiments", {{"measuring", 0}, {"reason", nullptr}, {"next_pair", 1240}}}}},
        {"targets", json::array()}};
    for (const char* outcome : {"improved", "regressed", "improved", "undecided", "improved"})
        document["targets"].push_back({{"outcome", outcome}});
    for (int i = 0; i < 9; i++) document["targets"].push_back({{"outcome", nullptr}});
    EXPECT_EQ(ctl::comparisons_text(document, 1000),
              "5 of 14 targets: 3 improved, 1 undecided, 1 regressed; next pair in 4 min");
    document["daemon"]["experiments"]["next_pair"] = nullptr;
    document["targets"][0]["comparison"]["reason"] = "not busy";
    EXPECT_THAT(ctl::comparisons_text(document, 1000), EndsWith("; waiting for traffic"));
    document["daemon"]["state"] = "observing";
    document["daemon"]["experiments"]["reason"] = "wq_tuned=off";
    EXPECT_THAT(ctl::comparisons_text(document, 1000), EndsWith("; no pair now")) << "status says why";
    document["targets"] = json::array();
    EXPECT_EQ(ctl::comparisons_text(document, 1000), "") << "status says why";
    document["daemon"]["experiments"] = nullptr;
    EXPECT_EQ(ctl::comparisons_text(document, 1000), "") << "without a daemon";
}

TEST(ProgressText, TheSummarySaysWhatNoTrafficEnds) {
    json document = {
        {"daemon", {{"experiments", {{"measuring", 0}, {"reason", nullptr}, {"next_pair", nullptr}}}}},
        {"targets", json::array()}};
    for (int i = 0; i < 2; i++)
        document["targets"].push_back({{"outcome", nullptr}, {"comparison", nullptr}});
    EXPECT_THAT(ctl::comparisons_text(document, 1000), EndsWith("; nothing to compare"));
    for (json& target : document["targets"])
        target["comparison"]["reason"] = "its judge.budget for today is used up";
    EXPECT_THAT(ctl::comparisons_text(document, 1000),
                EndsWith("; no pair now: its judge.budget for today is used up"));
    document["targets"][1]["comparison"]["reason"] = "external";
    EXPECT_THAT(ctl::comparisons_text(document, 1000), EndsWith("; no pair now, for several reasons"));
    for (const char* passing : {"not busy", "it is another target's turn"}) {
        document["targets"][1]["comparison"]["reason"] = passing;
        EXPECT_THAT(ctl::comparisons_text(document, 1000), EndsWith("; waiting for traffic"));
    }
}

// Returns the output of a progress line on a narrow terminal with this TERM.
std::string shown_on(const char* term) {
    int ends[2];
    const winsize size{24, 40, 0, 0};
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, &size) != 0) return "no terminal";
    const Fd master(ends[0]);
    const Fd before(::dup(STDERR_FILENO));
    ::dup2(ends[1], STDERR_FILENO);
    ::setenv("TERM", term, 1);
    {
        ctl::ProgressLine line;
        line.show("one");
        line.show("one");
        line.show(std::string(60, 'x'));
        line.end();
    }
    ::dup2(before.get(), STDERR_FILENO);
    ::close(ends[1]);
    // The output may come in parts. At its end, read(2) fails with EIO.
    std::string shown;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(master.get(), part.data(), part.size())) > 0;)
        shown.append(part.data(), static_cast<std::size_t>(n));
    return shown;
}

TEST(ProgressLine, OnATerminalIsOneLineHoweverNarrow) {
    EXPECT_EQ(shown_on("xterm"),
              "\r\033[K\033[?7lone\033[?7h\r\033[K\033[?7l" + std::string(60, 'x') + "\033[?7h\r\n");
}

TEST(ProgressLine, OnADumbTerminalIsALineForEachChange) {
    EXPECT_EQ(shown_on("dumb"), "one\r\n" + std::string(60, 'x') + "\r\n");
}

}  // namespace
}  // namespace wq
