// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a report, made of model values alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ctl/report/report_machine.h"
#include "ctl/report/report_page.h"
#include "ctl/report/report_plan.h"
#include "ctl/report/report_trial.h"
#include "fake_machine.h"
#include "kernel/hwloc_topology.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::machine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kNasty = "<script>alert(\"1\")</script>&'\x1b[31m\xff\u009b";

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) n++;
    return n;
}

// Each element that is opened is closed, in order; none but those that have no end.
void expect_well_formed(const std::string& html) {
    std::vector<std::string> open;
    for (auto at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
        const auto end = html.find('>', at);
        ASSERT_NE(end, std::string::npos);
        const std::string tag = html.substr(at + 1, end - at - 1);
        const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
        if (tag.back() == '/' || name == "br" || name == "meta" || name == "!DOCTYPE") continue;
        if (tag.front() != '/') {
            open.push_back(name);
            continue;
        }
        ASSERT_FALSE(open.empty()) << tag;
        ASSERT_EQ("/" + open.back(), tag);
        open.pop_back();
    }
    EXPECT_TRUE(open.empty());
}

std::string drawn(const Topology& topology, const Isolation& isolation = {},
                  const KernelInfo& kernel = test::kernel_72()) {
    return machine_html({topology, kernel, 8, isolation});
}

// Each core of TOPOLOGY once, by its lowest CPU.
void expect_each_core_once(const Topology& topology) {
    const std::string html = drawn(topology);
    expect_well_formed(html);
    EXPECT_EQ(count(html, " data-core=\""), topology.cores.size());
    for (const CpuSet& core : topology.cores)
        EXPECT_EQ(count(html, fmt::format(" data-core=\"{}\"", core.first())), 1U) << core.list();
}

VerdictRecord record(const std::string& target = "kcryptd-1") {
    VerdictRecord r;
    r.key = {"6.12", "8 CPUs", "kcryptd-#", "cache", "smt", "alpha 0.05"};
    r.target = target;
    r.time = 1'700'000'000;
    r.standing = {"latency", 0, 0, 0, {}};
    r.settings = JudgeSettings{.alpha = 0.025, .tolerance = 0.02};
    return r;
}

// A trial of PAIRS pairs whose candidate costs FACTOR times the baseline, as the judge ended it.
ReportTrial trial(std::size_t pairs, double factor = 1.05) {
    ReportTrial out{record(), TrialReadings{{{"other", false}, {"latency", false}}, {}}};
    JudgeSettings settings = *out.record.settings;
    settings.max_pairs = static_cast<unsigned>(pairs);
    Trial judge(settings, out.readings->counters);
    for (std::size_t i = 0; i < pairs; i++) {
        const WindowPair pair{{{1, 1.01}, {1000, 1000 * (factor + (i % 2 == 0 ? 0.3 : -0.3))}}, {}};
        out.readings->add(pair);
        judge.add(pair);
    }
    out.record.standing = judge.standing();
    return out;
}

TEST(ReportEscape, LeavesNothingThatABrowserWouldObey) {
    EXPECT_EQ(escape(kNasty), "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;?[31m???");
    EXPECT_EQ(escape("kcryptd-254:0-1 größer"), "kcryptd-254:0-1 größer");
}

TEST(ReportPage, LoadsNothingAndEscapesItsHead) {
    const std::string page = report_page({kNasty, kNasty, kNasty, kNasty, 1'700'000'000}, "<p>body</p>\n");
    expect_well_formed(page);
    EXPECT_THAT(page, AllOf(HasSubstr("default-src 'none'"), HasSubstr("<p>body</p>"),
                            HasSubstr("2023-11-14 22:13 UTC"), Not(HasSubstr("<script")),
                            Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("url("))));
    EXPECT_EQ(count(page, "&lt;script"), 5U) << "title, h1, kernel, daemon, source";
}

TEST(ReportMachine, HasAnElementPerCoreAndPerThread) {
    const std::string html = drawn(machine({.sockets = 2, .cores = 12, .threads = 2}));
    expect_well_formed(html);
    EXPECT_EQ(count(html, " data-core=\""), 24U);
    EXPECT_EQ(count(html, "<strong>Package"), 2U);
    EXPECT_EQ(count(html, "<p>LLC "), 2U);
    EXPECT_EQ(count(html, "<div class=\"shard\""), 4U) << "12 cores are two shards";
    EXPECT_THAT(html, HasSubstr("data-core=\"23\"><b>23</b><b>47</b></span>"));
    EXPECT_THAT(html, HasSubstr("NUMA node 1 · 12 cores · CPUs 12-23,36-47"));
}

TEST(ReportMachine, MarksWhatIsSetApart) {
    Topology topology = test::without(machine({.cores = 6, .threads = 2}), "5,11");
    topology.isolated = {2, 8, 3};  // a core, and one thread of another
    for (Llc& llc : topology.llcs) llc.cpus -= topology.isolated;
    const Isolation isolation{
        topology.isolated, {3, 4}, {{"/rt", {4}, "isolated"}, {"/all", {0}, "root"}}, true};
    const std::string html = drawn(topology, isolation);
    expect_well_formed(html);
    EXPECT_EQ(count(html, " data-core=\""), 5U);
    EXPECT_THAT(html, HasSubstr("In no LLC <small>1 core · 2,8"));
    EXPECT_THAT(html, HasSubstr("data-core=\"2\"><b class=\"i\">2</b><b class=\"i\">8</b></span>"));
    EXPECT_THAT(html, HasSubstr("data-core=\"3\"><b class=\"i n\">3</b><b>9</b></span>"));
    EXPECT_THAT(html, HasSubstr("data-core=\"4\"><b class=\"p n\">4</b><b>10</b></span>"));
    EXPECT_THAT(html, HasSubstr("<span class=\"core\"><b class=\"o\">11</b></span>"));
    EXPECT_THAT(html, HasSubstr("(nohz_full): CPUs 3-4"));
}

TEST(ReportMachine, OfNoKnownPackageIsStillDrawn) {
    Topology topology = machine({.sockets = 2, .cores = 4});
    topology.packages.pop_back();
    const std::string html = drawn(topology);
    EXPECT_EQ(count(html, " data-core=\""), 8U);
    EXPECT_THAT(html, HasSubstr("CPUs of no known package"));
    topology.packages.clear();
    EXPECT_EQ(count(drawn(topology), " data-core=\""), 8U);
}

TEST(ReportMachine, AnLlcOfSeveralPackagesIsDrawnOnce) {
    const auto topology = read_topology("synthetic:l3:1 pack:2 core:2 pu:1");
    ASSERT_TRUE(topology) << topology.error().text;
    expect_each_core_once(*topology);
    const std::string html = drawn(*topology);
    EXPECT_EQ(count(html, "<p>LLC "), 1U);
    EXPECT_THAT(html, AllOf(HasSubstr("<strong>Packages 0-1</strong>"),
                            HasSubstr("<p>LLC 0 <small>packages 0-1 · "), Not(HasSubstr("In no LLC"))));
}

TEST(ReportMachine, PackagesThatShareNothingStayApart) {
    Topology topology = machine({.sockets = 4, .cores = 2});
    ASSERT_EQ(topology.llcs.size(), 4U);
    topology.llcs[1].cpus |= topology.llcs[3].cpus;
    topology.llcs.pop_back();
    expect_each_core_once(topology);
    const std::string html = drawn(topology);
    EXPECT_THAT(html,
                AllOf(HasSubstr("<strong>Package 0</strong>"), HasSubstr("<strong>Packages 1,3</strong>"),
                      HasSubstr("<strong>Package 2</strong>"), Not(HasSubstr("In no LLC"))));
    topology.packages.pop_back();
    expect_each_core_once(topology);
    EXPECT_THAT(drawn(topology), HasSubstr("<strong>Package 1 and CPUs of no known one</strong>"));
}

TEST(ReportMachine, ACoreOfTwoLlcsOrPackagesIsDrawnOnce) {
    Topology topology = machine({.sockets = 2, .cores = 1, .threads = 2});
    topology.cores = {{0, 1, 2, 3}};
    expect_each_core_once(topology);
    topology.llcs.clear();
    expect_each_core_once(topology);
    EXPECT_THAT(drawn(topology), HasSubstr("In no LLC <small>1 core · 0-3"));
}

TEST(ReportMachine, TellsOfTheKernelsOwnPods) {
    const Topology topology = machine({.cores = 4});
    KernelInfo kernel = test::kernel_72();
    EXPECT_THAT(drawn(topology, {}, kernel),
                AllOf(HasSubstr("by the kernel&#39;s rule; "), Not(HasSubstr("instead"))));
    kernel.pods = KernelPods{{Scope::cache, {{{0, 1}}, {{2, 3}}}}};
    EXPECT_THAT(drawn(topology, {}, kernel),
                HasSubstr("of cache, the kernel has 2 pods instead: CPUs 0-1; 2-3</p>"));
    kernel.pods.reset();
    kernel.pods_unread = "<no BTF>";
    EXPECT_THAT(drawn(topology, {}, kernel), HasSubstr("were not read: &lt;no BTF&gt;</p>"));
    EXPECT_THAT(drawn(topology, {}, test::kernel_612()), HasSubstr("there is no cache_shard here"));
}

TEST(ReportMachine, OfEightThousandCpusIsSmall) {
    const auto topology = read_topology("synthetic:pack:32 l3:16 core:8 pu:2");
    ASSERT_TRUE(topology) << topology.error().text;
    const std::string html = drawn(*topology);
    EXPECT_EQ(count(html, " data-core=\""), 4096U);
    EXPECT_EQ(count(html, "<p>LLC "), 512U);
    EXPECT_LT(html.size(), 1U << 20);
}

TEST(ReportPlan, EscapesWhatAWorkqueueIsCalled) {
    const Topology topology = machine({.cores = 12, .threads = 2});
    const Policy policy = test::rule_for_all();
    const std::vector<Workqueue> targets = {test::unbound(topology, Scope::cache, kNasty)};
    const auto plan = make_plan({topology, test::kernel_612(), policy, targets, "", 8});
    const json status = {{"targets",
                          {{{"name", plan[0].target.name},
                            {"state", kNasty.substr(0, 8)},
                            {"baseline", "<b>"},
                            {"reason", "&"},
                            {"trial", nullptr}}}}};
    const std::string html = plan_html(plan, status);
    expect_well_formed(html);
    EXPECT_THAT(html, HasSubstr("<code>&lt;script&gt;"));
    EXPECT_THAT(html, HasSubstr("<td data-label=\"Baseline\">&lt;b&gt;</td>"));
    EXPECT_THAT(html, HasSubstr("system: 1×12"));
    EXPECT_THAT(html, HasSubstr("<td data-label=\"Planned\">smt</td>"));
    EXPECT_THAT(html, HasSubstr("rules.toml:1"));
    const std::string alone = plan_html(plan, nullptr);
    EXPECT_THAT(alone, Not(HasSubstr("State"))) << "nobody was asked";
    EXPECT_THAT(plan_html({}, nullptr), HasSubstr("no workqueue"));
}

TEST(ReportTrials, WithoutAnySaySo) {
    EXPECT_THAT(trials_html({}), HasSubstr("No trial has ended here yet."));
    EXPECT_THAT(history_html({}), HasSubstr("No trial has ended here yet."));
    const std::vector<ReportTrial> old = {{record(), {}}};
    EXPECT_THAT(trials_html(old), HasSubstr("Of no trial that ended here are the pairs kept."));
    EXPECT_THAT(history_html(old), AllOf(HasSubstr("kcryptd-1"), Not(HasSubstr("href"))));
}

TEST(ReportTrials, TheRunningEvidenceEndsWhereTheJudgeDid) {
    const ReportTrial one = trial(9);
    const std::size_t counter = one.record.standing.counter == "latency" ? 1 : 0;
    const auto evidence = running_evidence(*one.readings, counter, 0.02);
    ASSERT_EQ(evidence.log_regressed.size(), 9U);
    EXPECT_DOUBLE_EQ(evidence.log_regressed.back(), one.record.standing.log_regressed);
    EXPECT_DOUBLE_EQ(evidence.log_improved.back(), one.record.standing.log_improved);
}

TEST(ReportTrials, AreDrawnWithEachPairAndTheThreshold) {
    for (const std::size_t pairs : {std::size_t{1}, std::size_t{2}, std::size_t{16}, std::size_t{512}}) {
        const ReportTrial one = trial(pairs);
        const std::string html = trials_html({one});
        expect_well_formed(html);
        const auto dots = html.find("class=\"dots\"");
        EXPECT_EQ(count(html.substr(dots, html.find("/>", dots) - dots), "h0"), pairs);
        EXPECT_THAT(html, HasSubstr("decides: 80")) << "two counters, alpha 0.025";
        EXPECT_THAT(html, HasSubstr("tolerated"));
        EXPECT_EQ(html.find("nan"), std::string::npos) << pairs;
        EXPECT_EQ(html.find("inf"), std::string::npos) << pairs;
        EXPECT_EQ(count(html, "<details>"), pairs <= 64 ? 1U : 0U);
        EXPECT_LT(html.size(), 64U << 10);
    }
}

TEST(ReportTrials, SayWhatIsNotShown) {
    ReportTrial one = trial(4);
    one.record.dropped = 3;
    one.record.standing.pairs = 600;
    EXPECT_THAT(trials_html({one}), AllOf(HasSubstr("3 more dropped"),
                                          HasSubstr("of the first 4 pairs, median and band of all 600")));
    EXPECT_EQ(count(trials_html({one}), "band of all 600"), 5U) << "summary, captions, labels";
    one.record.settings.reset();
    EXPECT_THAT(trials_html({one}), Not(HasSubstr("decides"))) << "alpha is not known";
}

TEST(ReportTrials, OfAbsurdReadingsStayInTheirFrame) {
    ReportTrial one = trial(3);
    one.readings->pairs[0][1] = {1e-300, 1e300};
    one.readings->pairs[1][1] = {1e300, 1e-300};
    one.readings->pairs[2][1] = {5, 5};
    one.record.settings->alpha = 1e-300;
    const std::string html = trials_html({one});
    expect_well_formed(html);
    EXPECT_EQ(html.find("nan"), std::string::npos);
    const auto dots = html.find("class=\"dots\"");
    EXPECT_LT(html.find("/>", dots) - dots, 200U) << "coordinates are of the frame";
}

TEST(ReportTrials, TheSmallestAlphaHasALineThatDecides) {
    ReportTrial one = trial(3);
    one.record.settings->alpha = 5e-324;  // m/alpha is more than a double holds
    const std::string html = trials_html({one});
    expect_well_formed(html);
    EXPECT_THAT(html, AllOf(HasSubstr("decides: 1e323"), Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
    EXPECT_LT(count(html, "class=\"grid\""), 40U);
}

TEST(ReportTrials, SayWhatBetterAlsoHangsOn) {
    ReportTrial one = trial(8, 0.9);
    one.readings->counters[0].name = "psi:<io>";
    for (auto& pair : one.readings->pairs) pair[0] = {1, 1.1};
    const std::string html = trials_html({one});
    const double log = running_evidence(*one.readings, 0, 0.02).log_regressed.back();
    EXPECT_GT(log, running_evidence(*one.readings, 1, 0.02).log_regressed.back());
    EXPECT_THAT(html,
                HasSubstr(fmt::format("is above 1; highest: psi:&lt;io&gt; {:.3g}.</p>", std::exp(log))));
    one.readings->counters.pop_back();
    for (auto& pair : one.readings->pairs) pair.pop_back();
    EXPECT_THAT(trials_html({one}), Not(HasSubstr("Better counts only"))) << "one counter says all itself";
}

// More of it is better: twice as much is half the cost.
TEST(ReportTrials, WhatIsBetterWhenHigherIsDrawnAsACost) {
    ReportTrial one{record(), TrialReadings{{{"bandwidth", true}}, {}}};
    Trial judge(*one.record.settings, one.readings->counters);
    for (int i = 0; i < 3; i++) {
        const WindowPair pair{{{100, 200}}, {}};
        one.readings->add(pair);
        judge.add(pair);
    }
    one.record.standing = judge.standing();
    const auto evidence = running_evidence(*one.readings, 0, 0.02);
    EXPECT_DOUBLE_EQ(evidence.log_improved.back(), one.record.standing.log_improved);
    EXPECT_GT(evidence.log_improved.back(), 0);
    EXPECT_LT(evidence.log_regressed.back(), 0);
    const std::string html = trials_html({one});
    EXPECT_THAT(html, AllOf(HasSubstr("<td class=\"num\">-50.00%</td>"), Not(HasSubstr("+100"))));
}

TEST(ReportTrials, NamesAtTheEdgeStayApart) {
    ReportTrial one = trial(6);
    for (auto& pair : one.readings->pairs) pair[1] = {1000, 1020};  // the median is what is tolerated
    one.record.standing.effect = {2, {}};
    const auto y_of = [](const std::string& html, const std::string& name) {
        const auto end = html.find(" text-anchor=\"start\" class=\"mark\">" + name + "<");
        EXPECT_NE(end, std::string::npos) << name;
        return std::stod(html.substr(html.rfind("y=\"", end) + 3));
    };
    std::string html = trials_html({one});
    EXPECT_GE(std::abs(y_of(html, "tolerated") - y_of(html, "median")), 11.9);
    EXPECT_THAT(html, Not(HasSubstr("&gt;1000%")));
    one.readings->pairs[2][1] = {1, 100};
    html = trials_html({one});
    EXPECT_THAT(html, AllOf(HasSubstr(">&gt;1000%<"), HasSubstr("beyond +1000% is at the edge")));
    const double bottom =
        std::max({y_of(html, "tolerated"), y_of(html, "median"), y_of(html, "worse"), y_of(html, "better")});
    EXPECT_LT(bottom, 200) << "in the frame";
    EXPECT_GE(std::abs(y_of(html, "worse") - y_of(html, "better")), 11.9);
}

TEST(ReportTrials, TheLastIsFirstAndNamesAreEscaped) {
    ReportTrial first = trial(6);
    ReportTrial last = trial(6);
    last.record.target = last.record.key.baseline = last.record.reason = kNasty;
    last.readings->counters[1].name = last.record.standing.counter = kNasty;
    last.record.outcome = TrialOutcome::regressed;
    const std::vector<ReportTrial> both = {first, last};
    for (const std::string& html : {trials_html(both), history_html(both)}) {
        expect_well_formed(html);
        EXPECT_THAT(html,
                    AllOf(HasSubstr("&lt;script"), Not(HasSubstr("<script")), HasSubstr("▲ regressed")));
        EXPECT_LT(html.find("trial-2"), html.find("trial-1"));
    }
}

}  // namespace
}  // namespace wq::ctl
