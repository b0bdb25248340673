// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a report, made from model values only.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ctl/report/report.h"
#include "evidence/comparison.h"
#include "fake_machine.h"
#include "report_html.h"
#include "verdict_files.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::count;
using test::expect_well_formed;
using test::machine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kNasty = "<script>alert(\"1\")</script>&'\x1b[31m\xff\u009b";

VerdictRecord record(const std::string& target = "kcryptd-1") {
    VerdictRecord r;
    r.key = test::key_of("kcryptd-#");
    r.target = target;
    r.time = 1'700'000'000;
    r.standing = {"latency", 0, 0, 0, {}};
    r.settings = JudgeSettings{.alpha = 0.025, .tolerance = 0.02};
    return r;
}

// The standing of COMPARISON, as a record stores it.
Standing standing_of(const Comparison& comparison) {
    const Decision decision = comparison.decide({.alpha = 0.025});
    return {decision.counter, static_cast<unsigned>(decision.pairs), decision.log_worse, decision.log_better,
            comparison.effect(decision.column)};
}

// A comparison of PAIRS pairs whose candidate costs FACTOR times the reference.
VerdictRecord trial(std::size_t pairs, double factor = 1.05) {
    VerdictRecord out = record();
    Comparison comparison(
        std::vector<ComparedCounter>{{"other", false, 0.02, false}, {"latency", false, 0.02, false}});
    for (std::size_t i = 0; i < pairs; i++) {
        const double cost = 1000 * (factor + (i % 2 == 0 ? 0.3 : -0.3));
        comparison.add({PairValues{1, 1.01}, PairValues{1000, cost}});
    }
    out.standing = standing_of(comparison);
    out.differences = differences_of(comparison.columns());
    return out;
}

TEST(ReportPage, LoadsNothingEscapesAndLinksToItsSections) {
    EXPECT_EQ(escape(kNasty), "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;?[31m???");
    EXPECT_EQ(escape("kcryptd-254:0-1 größer"), "kcryptd-254:0-1 größer");
    EXPECT_EQ(prose("`smt`: 1 < 2; `a&b`"), "<code>smt</code>: 1 &lt; 2; <code>a&amp;b</code>");
    EXPECT_EQ(prose("one ` alone"), "one ` alone");
    EXPECT_EQ(prose(""), "");
    const std::string page = report_page({kNasty, kNasty, kNasty, kNasty, 1'700'000'000},
                                         "<section id=\"plan\">\n<p>body</p>\n</section>\n");
    expect_well_formed(page);
    EXPECT_THAT(page, AllOf(HasSubstr("default-src 'none'"), HasSubstr("<p>body</p>"),
                            HasSubstr("2023-11-14 22:13 UTC"), Not(HasSubstr("<script")),
                            Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("url(")),
                            HasSubstr("<a href=\"#plan\">Plan</a>"), Not(HasSubstr("href=\"#history\""))));
    EXPECT_EQ(count(page, "&lt;script"), 5U) << "title, h1, kernel, daemon, source";
}

TEST(ReportPlan, HasWhatIsThereAndWhatIsPlanned) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    const Policy policy = test::rule_for_all();
    const auto plan = make_plan(
        {topology, test::kernel_612(), policy, {test::unbound(topology, Scope::cache, "a")}, "", 8});
    const std::string html = plan_html(plan, nullptr);
    expect_well_formed(html);
    EXPECT_THAT(html, AllOf(HasSubstr("system: 1×12"), HasSubstr("<td data-label=\"Planned\">smt</td>"),
                            HasSubstr("rules.toml:1")));
    EXPECT_THAT(html, Not(HasSubstr("State"))) << "nobody was asked";
    EXPECT_THAT(plan_html({}, nullptr), HasSubstr("no workqueue"));
}

PlanLine plan_line(const Topology& topology, const std::string& name, const std::string& word,
                   Scope effective) {
    PlanLine line;
    line.target = test::unbound(topology, effective, name);
    line.target.scope.word = word;
    line.now = effective;
    line.planned = Scope::smt;
    line.action = effective == Scope::smt ? Action::none : Action::compare;
    line.finding = Finding::change;
    line.reason = "a reason";
    line.candidates = {{Scope::smt, {Scope::smt}, 12, 1, 1}};
    return line;
}

TEST(ReportPlan, GroupsTargetsThatDifferInTheirNamesAlone) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    std::vector<PlanLine> plan = {plan_line(topology, "nvme-wq", "smt", Scope::smt)};
    for (int i = 0; i < 9; i++)
        plan.push_back(plan_line(topology, fmt::format("kcryptd-{}", i), "default", Scope::cache));
    std::string html = plan_html(plan, nullptr);
    expect_well_formed(html);
    EXPECT_EQ(count(html, "<tr><td"), 2U);
    EXPECT_EQ(count(html, "a reason"), 2U);
    EXPECT_THAT(html, AllOf(HasSubstr("<strong>9</strong> <code>kcryptd-0</code>"),
                            HasSubstr("<summary>and 6 more</summary>"), HasSubstr("<code>kcryptd-8</code>"),
                            HasSubstr("nvme-wq")));
    EXPECT_LT(html.find("kcryptd-0"), html.find("nvme-wq")) << "what would be written comes first";
    plan[3].reason = "another";
    EXPECT_EQ(count(plan_html(plan, nullptr), "<tr><td"), 3U);
    const json status = {
        {"targets", {{{"name", "kcryptd-1"}, {"state", "pinned"}, {"baseline", "default"}}}}};
    html = plan_html(plan, status);
    EXPECT_EQ(count(html, "<tr><td"), 4U) << "it has a state of its own";
    EXPECT_THAT(html, HasSubstr("pinned"));
}

std::string result_of(const std::vector<VerdictRecord>& trials, const std::vector<PlanLine>& plan,
                      const json& status = nullptr) {
    return result_html({trials, plan, status});
}

VerdictRecord ended(const std::string& target, Judgement outcome, double percent) {
    VerdictRecord out = record(target);
    out.outcome = outcome;
    out.standing = {"latency", 9, 0, 0, {percent, Effect::Interval{percent - 1, percent + 1}}};
    return out;
}

TEST(ReportResult, NamesWhatWasImprovedByHowMuchAndWhatIsInForce) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    const std::vector<PlanLine> plan = {plan_line(topology, "kcryptd-1", "smt", Scope::smt),
                                        plan_line(topology, "raid5wq", "default", Scope::cache),
                                        plan_line(topology, "writeback", "default", Scope::cache)};
    const std::vector<VerdictRecord> trials = {ended("raid5wq", Judgement::regressed, 4.2),
                                               ended("kcryptd-1", Judgement::improved, -6.1),
                                               ended("writeback", Judgement::undecided, 0.3)};
    const std::string html = result_of(trials, plan);
    expect_well_formed(html);
    EXPECT_THAT(
        html, AllOf(HasSubstr("<strong>1</strong> <span class=\"improved\">▼ improved</span>: "
                              "<code>kcryptd-1</code> <strong>latency 6.1% better (5.1 to 7.1)</strong> with "
                              "<code>smt</code> in place of <code>cache</code> (in force now)"),
                    HasSubstr("<strong>1</strong> <span class=\"regressed\">▲ regressed</span>: "
                              "<code>raid5wq</code> <strong>latency 4.2% worse (3.2 to 5.2)</strong> with "
                              "<code>smt</code> in place of <code>cache</code> (not in force now)"),
                    HasSubstr("<strong>1</strong> <span class=\"undecided\">undecided</span></li>"),
                    HasSubstr("would change 2 of 3 targets: <code>cache</code> → <code>smt</code>")));
    EXPECT_LT(html.find("kcryptd-1"), html.find("raid5wq"));
    EXPECT_EQ(count(history_html(trials), "role=\"img\""), 3U) << "a bar for each";
}

TEST(ReportResult, TheLastJudgedTrialOfTheSameArmsCounts) {
    std::vector<VerdictRecord> trials = {ended("kcryptd-1", Judgement::regressed, 4),
                                         ended("kcryptd-1", Judgement::improved, -6),
                                         ended("kcryptd-1", Judgement::undecided, 1)};
    trials.back().judged = false;
    std::string html = result_of(trials, {});
    EXPECT_THAT(html, AllOf(HasSubstr("▼ improved"), Not(HasSubstr("regressed")), Not(HasSubstr("cut off"))));
    trials[0].key.candidate = "system";
    trials[0].key.kernel = "6.8";
    html = result_of(trials, {});
    EXPECT_THAT(html, AllOf(HasSubstr("▼ improved"), HasSubstr("▲ regressed")));
    EXPECT_EQ(count(history_html(trials, "6.12"), "with kernel 6.8"), 1U);
    trials.erase(trials.begin(), trials.begin() + 2);
    EXPECT_THAT(result_of(trials, {}),
                HasSubstr("<strong>1</strong> <span class=\"cut-off\">cut off</span>"));
}

TEST(ReportResult, ManyAreShortened) {
    std::vector<VerdictRecord> trials;
    trials.reserve(40);
    for (int i = 0; i < 40; i++)
        trials.push_back(ended(fmt::format("kcryptd-{}", i), Judgement::improved, -i));
    const std::string html = result_of(trials, {});
    expect_well_formed(html);
    EXPECT_THAT(html, AllOf(HasSubstr("<strong>40</strong> <span class=\"improved\">▼ improved"),
                            HasSubstr("<li>and 36 more</li>"), HasSubstr("kcryptd-38")));
    EXPECT_LT(html.find("kcryptd-39"), html.find("kcryptd-38")) << "the largest gain comes first";
    EXPECT_THAT(history_html({ended("kcryptd-1", Judgement::regressed, 265)}),
                AllOf(HasSubstr("▲ regressed"), HasSubstr("latency 270% worse (260 to 270)"),
                      HasSubstr("class=\"beyond\"")));
}

TEST(ReportResult, TellsWhatTheDaemonSays) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    const std::vector<PlanLine> plan = {plan_line(topology, "kcryptd-1", "smt", Scope::smt)};
    const json trial = {{"candidate", kNasty.substr(0, 8)},
                        {"reference", "cache"},
                        {"course", "dense"},
                        {"e_improved", 12.3},
                        {"pairs", 3},
                        {"max_pairs", 64}};
    json idle = trial;
    idle["pairs"] = 0;
    const auto target = [](const char* name, const char* state, const json& comparison) {
        return json{{"name", name}, {"state", state}, {"baseline", "default"}, {"comparison", comparison}};
    };
    const json status = {{"targets",
                          {target("kcryptd-1", "trial", trial), target("writeback", "waiting", idle),
                           target("raid5wq", "waiting", idle)}}};
    const std::string html = result_of({}, plan, status);
    expect_well_formed(html);
    EXPECT_THAT(html, HasSubstr("No pair yet</strong>: <code>raid5wq</code>, <code>writeback</code>.</li>"));
    EXPECT_THAT(html, AllOf(HasSubstr("Compared now</strong>: <code>kcryptd-1</code>: 12 to 1 that "
                                      "&lt;script&gt; is better than cache, 3 "
                                      "of 64 pairs"),
                            HasSubstr("Nothing was compared here yet")));
}

TEST(ReportResult, OfADescribedMachineSaysSo) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    std::vector<PlanLine> plan = {plan_line(topology, "*", "default", Scope::cache)};
    EXPECT_THAT(result_of({}, plan), AllOf(HasSubstr("only describes a machine"),
                                           HasSubstr("<code>cache</code> → <code>smt</code>")));
    plan[0].action = Action::none;
    EXPECT_THAT(result_of({}, plan), HasSubstr("keeps the kernel&#39;s setting"));
}

TEST(ReportTrials, WithoutAnySaySo) {
    EXPECT_THAT(trials_html({}), HasSubstr("No comparison has a verdict here yet."));
    EXPECT_EQ(history_html({}), "");
    const std::vector<VerdictRecord> old = {record()};
    EXPECT_THAT(trials_html(old), HasSubstr("The pairs behind the verdicts here were not kept."));
    EXPECT_THAT(history_html(old), AllOf(HasSubstr("kcryptd-1"), Not(HasSubstr("href"))));
}

TEST(ReportTrials, AreDrawnWithEachPairAndTheThreshold) {
    for (const std::size_t pairs : {std::size_t{1}, std::size_t{2}, std::size_t{16}, std::size_t{64}}) {
        const VerdictRecord one = trial(pairs);
        const std::string html = trials_html({one});
        expect_well_formed(html);
        const auto dots = html.find("class=\"dots\"");
        EXPECT_EQ(count(html.substr(dots, html.find("/>", dots) - dots), "h0"), pairs);
        EXPECT_THAT(html, HasSubstr("needed: 80")) << "two counters, alpha 0.025";
        EXPECT_THAT(html, HasSubstr("tolerated"));
        EXPECT_THAT(
            html, AllOf(HasSubstr("effect on "), HasSubstr("% worse</text>"),
                        HasSubstr("pair, in the order of time"), HasSubstr("evidence (logarithmic; 1: none)"),
                        HasSubstr("> no difference</li>"), HasSubstr("> median of the pairs</li>"),
                        HasSubstr("> tolerated by the policy: up to 2% worse</li>"),
                        HasSubstr("> evidence that it is worse</li>"), HasSubstr("probability 1/80 at most")))
            << "the legends";
        EXPECT_EQ(html.find("nan"), std::string::npos) << pairs;
        EXPECT_EQ(html.find("inf"), std::string::npos) << pairs;
        EXPECT_EQ(count(html, "<details"), 1U);
        EXPECT_LT(html.size(), 64U << 10);
    }
}

TEST(ReportTrials, SayWhatIsNotShown) {
    VerdictRecord one = trial(4);
    one.standing.pairs = 600;
    EXPECT_THAT(trials_html({one}),
                HasSubstr("only the last 4 of 600 pairs are drawn, and the evidence is theirs alone"));
    EXPECT_EQ(count(trials_html({one}), "only the last 4 of"), 5U) << "summary, captions, labels";
}

TEST(ReportTrials, OfAbsurdSettingsAndReadingsStayInTheirFrame) {
    VerdictRecord one = trial(3);
    one.settings.alpha = 5e-324;  // m/alpha overflows a double
    std::string html = trials_html({one});
    expect_well_formed(html);
    EXPECT_THAT(html, AllOf(HasSubstr("needed: 1e323"), Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
    EXPECT_LT(count(html, "class=\"grid\""), 40U);
    one.differences[1].last = {1e3, -1e3, 0};
    html = trials_html({one});
    expect_well_formed(html);
    EXPECT_EQ(html.find("nan"), std::string::npos);
    const auto dots = html.find("class=\"dots\"");
    ASSERT_NE(dots, std::string::npos);
    EXPECT_LT(html.find("/>", dots) - dots, 200U) << "coordinates are of the frame";
}

// With a counter that is better when higher, twice the value is half the cost.
TEST(ReportTrials, WhatIsBetterWhenHigherIsDrawnAsACost) {
    const VerdictRecord lower = trial(9);
    const std::size_t counter = lower.standing.counter == "latency" ? 1 : 0;
    const auto of_lower = running_evidence(lower.differences.at(counter).last, 0.02);
    ASSERT_EQ(of_lower.log_regressed.size(), 9U);
    EXPECT_DOUBLE_EQ(of_lower.log_regressed.back(), lower.standing.log_regressed);
    EXPECT_DOUBLE_EQ(of_lower.log_improved.back(), lower.standing.log_improved);
    VerdictRecord one = record();
    Comparison comparison(std::vector<ComparedCounter>{{"bandwidth", true, 0.02, false}});
    for (int i = 0; i < 3; i++) comparison.add({PairValues{100, 200}});
    one.differences = differences_of(comparison.columns());
    one.standing = standing_of(comparison);
    EXPECT_THAT(
        trials_html({one}),
        AllOf(HasSubstr("<td data-label=\"Effect\" class=\"num\">50% better</td>"), Not(HasSubstr("100%"))));
}

TEST(ReportTrials, OlderOnesAreFolded) {
    std::vector<VerdictRecord> trials(30, trial(6));
    for (std::size_t i = 0; i < trials.size(); i++) trials[i].target = fmt::format("wq-{}", i + 1);
    std::string html = trials_html(trials);
    expect_well_formed(html);
    const auto fold = html.find("<summary>20 older comparisons</summary>");
    ASSERT_NE(fold, std::string::npos);
    EXPECT_LT(html.find("trial-21\""), fold);
    EXPECT_THAT(html.substr(0, fold), Not(HasSubstr("trial-20\"")));
    EXPECT_THAT(html.substr(fold), HasSubstr("trial-20\""));
    EXPECT_LT(html.find("trial-30\""), html.find("trial-29\"")) << "the last is the first";
    html = history_html(trials);
    expect_well_formed(html);
    EXPECT_THAT(html, HasSubstr("<summary>10 older verdicts</summary>"));
    EXPECT_EQ(count(html, "<tr><td"), 30U);
    EXPECT_LT(html.find("trial-30"), html.find("trial-29"));
}

TEST(ReportSections, ObeyNoName) {
    VerdictRecord one = trial(6);
    one.target = one.key.reference = one.key.candidate = one.key.kernel = one.reason =
        one.differences[1].counter = one.standing.counter = kNasty;
    one.outcome = Judgement::regressed;
    const Topology topology = machine({.cores = 12, .threads = 2});
    const std::vector<PlanLine> plan = {plan_line(topology, kNasty, kNasty, Scope::cache)};
    const json status = {{"targets",
                          {{{"name", plan[0].target.name},
                            {"state", kNasty.substr(0, 8)},
                            {"baseline", "<b>"},
                            {"reason", "<script"},
                            {"comparison", nullptr}}}}};
    for (const std::string& html :
         {result_of({one}, plan, status), trials_html({one}), history_html({one}), plan_html(plan, status)}) {
        expect_well_formed(html);
        EXPECT_THAT(html, AllOf(HasSubstr("&lt;script"), Not(HasSubstr("<script")), Not(HasSubstr("<b>"))));
    }
    EXPECT_THAT(plan_html(plan, status), HasSubstr("<td data-label=\"Baseline\">&lt;b&gt;</td>"));
    EXPECT_THAT(trials_html({one}), HasSubstr("▲ regressed"));
}

}  // namespace
}  // namespace wq::ctl
