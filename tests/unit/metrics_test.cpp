// SPDX-License-Identifier: LGPL-2.1-or-later
// The text that node_exporter reads. tests/metrics checks that Prometheus accepts it.
#include "service/metrics.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <regex>
#include <sstream>

#include "base/version.h"
#include "fake_experiment.h"
#include "manual_writer.h"
#include "service/metrics_file.h"
#include "verdict_files.h"

namespace wq {
namespace {

using test::Dir;
using test::fixed;
using test::rule_for_all;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Every sample by its name and labels. Checks what node_exporter requires: every other line is a comment,
// HELP and TYPE of a metric come before its samples, and no series occurs twice.
std::map<std::string, double> samples(const std::string& text) {
    static const std::regex line(
        R"re(([a-z_]+)(\{[a-z_]+="(?:[^"\\]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\]|\\[\\"n])*")*\})? (\S+))re");
    std::map<std::string, double> out;
    std::istringstream in(text);
    std::string help;
    std::string type;
    EXPECT_TRUE(text.ends_with('\n'));
    for (std::string one; std::getline(in, one);) {
        std::smatch parts;
        if (one.starts_with("# HELP ")) {
            help = one.substr(7, one.find(' ', 7) - 7);
        } else if (one.starts_with("# TYPE ")) {
            type = one.substr(7, one.find(' ', 7) - 7);
            const bool counts = type.ends_with("_total");
            EXPECT_TRUE(one.ends_with(counts ? " counter" : " gauge")) << one;
        } else if (std::regex_match(one, parts, line)) {
            EXPECT_EQ(parts[1], help) << one;
            EXPECT_EQ(parts[1], type) << one;
            EXPECT_TRUE(out.emplace(parts[1].str() + parts[2].str(), std::stod(parts[3])).second) << one;
        } else {
            ADD_FAILURE() << "not a line of metrics: " << one;
        }
    }
    return out;
}

class MetricsTest : public test::ExperimentRig {
  protected:
    [[nodiscard]] std::string text() const {
        return metrics_text({parts_->engine, parts_->orders, *experiment_, *verdicts_, "running", facts_,
                             machine_, 1'600'000'000, health_});
    }
    [[nodiscard]] std::map<std::string, double> metrics() const { return samples(text()); }
    [[nodiscard]] double value(const std::string& series) const {
        const auto all = metrics();
        EXPECT_THAT(all, testing::Contains(testing::Key(series)));
        return all.contains(series) ? all.at(series) : -1;
    }
    // The number of series with names that start with NAME.
    [[nodiscard]] std::ptrdiff_t count(const std::string& name) const {
        return std::ranges::count_if(metrics(), [&](const auto& s) { return s.first.starts_with(name); });
    }
    // The hash that is a label of all evidence metrics.
    [[nodiscard]] std::string machine() const {
        std::smatch found;
        const std::string all = text();
        EXPECT_TRUE(
            std::regex_search(all, found, std::regex("wq_tuned_machine_info\\{machine=\"([0-9a-f]{16})\",")));
        return found[1];
    }
    // A verdict for this kernel and topology.
    [[nodiscard]] VerdictRecord verdict(const std::string& kind, std::int64_t time) const {
        VerdictRecord r;
        r.key = test::key_of(kind, kernel_key(kernel_), parts_->targets.snapshot().fingerprint);
        r.time = time;
        r.outcome = Judgement::regressed;
        r.standing = {"latency", 9, 4.5, -2, {25, Effect::Interval{12.5, 50}}};
        return r;
    }

    PolicyFacts facts_{"0123456789abcdef", "fedcba9876543210", 2, false, 3};
    Health health_;
    FleetMachine machine_{"x86_64", "GenuineIntel", "Xeon 1", 2, 16, std::nullopt};
};

TEST_F(MetricsTest, TheDaemonAndItsPolicy) {
    const auto all = metrics();
    const std::map<std::string, double> expected = {
        {std::string("wq_tuned_build_info{version=\"") + version() + "\"}", 1},
        {"wq_tuned_start_time_seconds", 1'600'000'000},
        {"wq_tuned_state{state=\"running\"}", 1},
        {"wq_tuned_state{state=\"paused\"}", 0},
        {"wq_tuned_state{state=\"observing\"}", 0},
        {"wq_tuned_mode{mode=\"observe\"}", 0},
        {"wq_tuned_mode{mode=\"tune\"}", 1},
        {"wq_tuned_policy_info{hash=\"0123456789abcdef\",sources=\"fedcba9876543210\"}", 1},
        {"wq_tuned_policy_files", 2},
        {"wq_tuned_policy_broken", 0},
        {"wq_tuned_policy_expired_rules", 3}};
    for (const auto& [series, value] : expected) EXPECT_EQ(all.at(series), value) << series;
    for (const std::string_view state : kStateNames) {
        const std::string series = "wq_tuned_targets{state=\"" + std::string(state) + "\"}";
        EXPECT_EQ(all.at(series), state == "waiting" ? 2 : state == "unmanaged" ? 1 : 0) << series;
    }
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_target_state{")))
        << "no per-target state for targets that we did not change";
    facts_ = {"", "", 0, true, 0};
    EXPECT_EQ(value("wq_tuned_policy_broken"), 1);
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_policy_info"))) << "no hash for a policy that cannot be read";
}

TEST_F(MetricsTest, TargetsThatWeHaveAHandInAreNamed) {
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "numa"));
    set_scope("writeback", "cpu");
    reconcile();
    EXPECT_EQ(value("wq_tuned_target_state{target=\"kcryptd\",state=\"pinned\"}"), 1);
    EXPECT_EQ(value("wq_tuned_target_state{target=\"writeback\",state=\"external\"}"), 1);
    EXPECT_EQ(value("wq_tuned_targets{state=\"pinned\"}"), 1);
    EXPECT_EQ(value("wq_tuned_targets{state=\"external\"}"), 1);
    EXPECT_EQ(value("wq_tuned_targets_unnamed"), 0);
}

TEST_F(MetricsTest, ManyTargetsAreOnlyCountedAndThoseThatWantAnEyeAreNamedFirst) {
    for (int i = 0; i < 300; i++) add_workqueue("many" + std::to_string(i));
    files_->on_write = [](const std::string& name, const auto&) { return name == "many99" ? EINVAL : 0; };
    auto policy = rule_for_all(fixed(Scope::smt));
    parts_->engine.set_policy(policy);
    reconcile();
    const auto all = metrics();
    EXPECT_EQ(all.at("wq_tuned_targets{state=\"set\"}"), 301);
    EXPECT_EQ(all.at("wq_tuned_targets_unnamed"), 102);
    EXPECT_EQ(all.at("wq_tuned_target_state{target=\"many99\",state=\"quarantined\"}"), 1);
    EXPECT_EQ(count("wq_tuned_target_state"), 200);
    EXPECT_EQ(all.at("wq_tuned_write_errors_total"), 1);
    EXPECT_GT(all.at("wq_tuned_write_seconds_total"), 0);
}

TEST_F(MetricsTest, ComparisonsAndTheirEvidence) {
    costs("smt", 1.05);
    EXPECT_EQ(value("wq_tuned_comparisons{course=\"dense\"}"), 2);
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_evidence_log"))) << "no pair yet";
    for (int i = 0; i < 3; i++) run_slot();
    EXPECT_EQ(value("wq_tuned_slots_total"), 3);
    EXPECT_EQ(value("wq_tuned_pairs_total{result=\"used\"}"), 6);
    EXPECT_EQ(value("wq_tuned_targets_measured"), 0);
    EXPECT_GT(value("wq_tuned_lost_seconds_today"), 0);
    const std::string arms = "{machine=\"" + machine() +
                             "\",class=\"kcryptd\",reference=\"cache\",reference_origin=\"kernel\","
                             "candidate=\"smt\",counter=";
    EXPECT_EQ(value("wq_tuned_comparison_pairs" + arms + "\"latency\"}"), 3);
    EXPECT_EQ(value("wq_tuned_comparison_pairs" + arms + "\"others\"}"), 3);
    const auto& entries = experiment_->ledger().entries();
    const auto entry = std::ranges::find(entries, "kcryptd", [](const auto& e) { return e.second.key.kind; });
    ASSERT_NE(entry, entries.end());
    for (const auto& column : entry->second.columns)
        EXPECT_DOUBLE_EQ(
            value("wq_tuned_comparison_effect_log" + arms + "\"" + column.counter.name + "\"}") * 3,
            column.sum);
    EXPECT_GT(value("wq_tuned_evidence_log" + arms + "\"latency\",direction=\"worse\",stake=\"2\"}"), 0);
    EXPECT_LT(value("wq_tuned_evidence_log" + arms + "\"latency\",direction=\"better\",stake=\"2\"}"), 0);
    EXPECT_EQ(count("wq_tuned_evidence_log"), 2 * 4 * 2 * 7)
        << "two comparisons, four counters, two directions, seven stakes";
}

TEST_F(MetricsTest, ContentionIsToldByArmWhereItWasSeen) {
    counters_.count = [this](const std::string& target, unsigned slot) {
        WorkCount out = window(target, word_[target][slot]);
        const bool smt = word_[target][slot] == "smt";
        out.lock = target == "kcryptd" ? smt ? 40 : 540 : WorkCount::kUnknown;
        out.pools = smt ? 12 : 2;
        return out;
    };
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_pools{"))) << "no pair yet";
    run_slot();
    const std::string cache = "{target=\"kcryptd\",arm=\"reference\",scope=\"cache\"}";
    const std::string smt = "{target=\"kcryptd\",arm=\"candidate\",scope=\"smt\"}";
    EXPECT_DOUBLE_EQ(value("wq_tuned_lock_wait_seconds" + cache), 5e-7);
    EXPECT_NEAR(value("wq_tuned_contention_ratio" + cache), 0.5, 0.05);
    EXPECT_EQ(value("wq_tuned_contention_ratio" + smt), 0);
    EXPECT_EQ(value("wq_tuned_pools" + smt), 12);
    EXPECT_EQ(value("wq_tuned_pools{target=\"writeback\",arm=\"reference\",scope=\"cache\"}"), 2);
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_contention_ratio{target=\"writeback\"")));
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_workers{"))) << "not known";
}

TEST_F(MetricsTest, WhatTheScopesInForceAreWorth) {
    EXPECT_EQ(value("wq_tuned_targets_moved"), 0);
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_worth")));
    costs("smt", 0.9);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    use_traffic({"kcryptd"});
    for (int i = 0; i < 15; i++) run_slot();
    const std::string labels = "{class=\"kcryptd\",scope=\"smt\",counter=\"latency\"}";
    EXPECT_EQ(value("wq_tuned_targets_moved"), 2);
    EXPECT_EQ(value("wq_tuned_worth_pairs" + labels), 15);
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_worth_ratio")));
    run_slot();
    EXPECT_EQ(value("wq_tuned_worth_pairs" + labels), 16);
    EXPECT_NEAR(value("wq_tuned_worth_ratio" + labels), 0.9, 0.02);
}

TEST_F(MetricsTest, TheKindOfTheMachineIsToldOnceAndByItsHashElsewhere) {
    const std::string before = machine();
    EXPECT_THAT(text(), HasSubstr(",arch=\"x86_64\",vendor=\"GenuineIntel\",model=\"Xeon 1\",packages=\"2\","
                                  "cores=\"16\",llc_cores=\"\",kernel=\"6.12 "));
    EXPECT_EQ(machine(), before);
    machine_.llc_cores = 8;
    EXPECT_NE(machine(), before);
}

TEST_F(MetricsTest, EvidenceIsToldOfTheNewestComparisonsAlone) {
    for (int i = 0; i < 40; i++) {
        // NOLINTNEXTLINE(performance-inefficient-string-concatenation)
        const std::string name =
            "many" + std::string(1, static_cast<char>('a' + i / 20)) + std::string(i % 20, 'x');
        add_workqueue(name);
        counters_.items[name] = 0;
    }
    reconcile();
    (void)run_until([this] { return experiment_->ledger().entries().size() >= 30; }, 300);
    ASSERT_GE(experiment_->ledger().entries().size(), 30U);
    EXPECT_EQ(count("wq_tuned_evidence_log"), static_cast<std::ptrdiff_t>(kMostComparisons) * 4 * 2 * 7);
}

TEST_F(MetricsTest, NamesAreEscapedAndWhatIsNotUtf8IsReplacedAndNeverTwice) {
    for (const char* kind : {"\xff", "\xfe", "\xc3\xa9\n", "\xc3", "a\"b\\c"})
        ASSERT_TRUE(test::keep(*verdicts_, verdict(kind, 1000)));
    const auto all = metrics();
    const std::string arms = ",reference=\"cache\",candidate=\"smt\"}";
    EXPECT_EQ(all.at("wq_tuned_verdict_timestamp_seconds{class=\"\uFFFD\"" + arms), 1000);
    EXPECT_EQ(all.at("wq_tuned_verdict_timestamp_seconds{class=\"\u00e9\\n\"" + arms), 1000);
    EXPECT_EQ(all.at(R"(wq_tuned_verdict_timestamp_seconds{class="a\"b\\c")" + arms), 1000);
    EXPECT_EQ(count("wq_tuned_verdict_timestamp"), 3);
}

TEST_F(MetricsTest, TheLastVerdictOfEachClassOnThisMachine) {
    VerdictRecord elsewhere = verdict("writeback", 3000);
    elsewhere.key.kernel = "5.0";
    VerdictRecord cut_off = verdict("kcryptd", 3000);
    cut_off.judged = false;
    VerdictRecord later = verdict("kcryptd", 2000);
    later.outcome = Judgement::improved;
    later.standing.effect = {-20, std::nullopt};
    VerdictRecord early = verdict("dm-#", 500);
    VerdictRecord unmeasured = verdict("nfsiod", 600);
    unmeasured.standing = {};
    for (const auto& r : {early, unmeasured, verdict("kcryptd", 1000), later, elsewhere, cut_off})
        ASSERT_TRUE(test::keep(*verdicts_, r));
    const auto all = metrics();
    const std::string arms = ",reference=\"cache\",candidate=\"smt\"";
    EXPECT_EQ(all.at("wq_tuned_effect_ratio{class=\"kcryptd\"" + arms + ",counter=\"latency\"}"), 0.8);
    EXPECT_EQ(all.at("wq_tuned_verdict_info{class=\"kcryptd\"" + arms + ",outcome=\"improved\"}"), 1);
    EXPECT_EQ(all.at("wq_tuned_verdict_timestamp_seconds{class=\"kcryptd\"" + arms + "}"), 2000);
    EXPECT_THAT(all, Not(testing::Contains(testing::Key("wq_tuned_effect_lower_ratio{class=\"kcryptd\"" +
                                                        arms + ",counter=\"latency\"}"))));
    EXPECT_EQ(all.at("wq_tuned_effect_ratio{class=\"dm-#\"" + arms + ",counter=\"latency\"}"), 1.25);
    EXPECT_EQ(all.at("wq_tuned_effect_lower_ratio{class=\"dm-#\"" + arms + ",counter=\"latency\"}"), 1.125);
    EXPECT_EQ(all.at("wq_tuned_effect_upper_ratio{class=\"dm-#\"" + arms + ",counter=\"latency\"}"), 1.5);
    EXPECT_EQ(all.at("wq_tuned_verdict_timestamp_seconds{class=\"nfsiod\"" + arms + "}"), 600);
    EXPECT_THAT(text(), Not(HasSubstr("class=\"nfsiod\"" + arms + ",counter")));
    EXPECT_THAT(text(), Not(HasSubstr("class=\"writeback\"")));
}

TEST_F(MetricsTest, OfManyVerdictsTheNewestStand) {
    for (int i = 0; i < 150; i++)
        ASSERT_TRUE(test::keep(*verdicts_, verdict("c" + std::string(1 + i, 'x'), i)));
    const auto all = metrics();
    std::vector<double> times;
    for (const auto& [series, time] : all)
        if (series.starts_with("wq_tuned_verdict_timestamp")) times.push_back(time);
    EXPECT_EQ(times.size(), 100U);
    EXPECT_EQ(*std::ranges::min_element(times), 50);
}

TEST_F(MetricsTest, HealthOfUnboundWorkqueues) {
    EXPECT_THAT(text(), Not(HasSubstr("wq_tuned_workqueue_"))) << "it was never looked at, or is refused";
    KernelWorkqueue crypt{.address = 1, .name = "kcryptd", .pools = 1, .in_sysfs = true, .unbound = true};
    KernelWorkqueue writeback = crypt;
    writeback.address = 2;
    writeback.name = "writeback";
    writeback.mem_reclaim = true;
    const KernelWorkqueue events{.address = 3, .name = "events", .managed = true, .cpu_intensive = 2};
    health_.add("0-7", {crypt, writeback, events}, 60'000'000);
    crypt.started = 9;
    crypt.completed = 7;
    crypt.repatriated = 1;
    writeback.in_flight = 2;
    writeback.mayday = 4;
    writeback.rescued = 3;
    health_.add("0-7", {crypt, writeback, events}, 120'000'000);
    health_.add("0-7", {crypt, writeback, events}, 180'500'000);
    const auto all = metrics();
    const auto of = [&](const std::string& metric, const std::string& name) {
        return all.at("wq_tuned_" + metric + "{workqueue=\"" + name + "\"}");
    };
    EXPECT_EQ(of("workqueue_started_total", "kcryptd"), 9);
    EXPECT_EQ(of("workqueue_completed_total", "kcryptd"), 7);
    EXPECT_EQ(of("workqueue_repatriated_total", "kcryptd"), 1);
    EXPECT_EQ(of("workqueue_in_flight", "kcryptd"), 0);
    EXPECT_EQ(of("workqueue_stalled_seconds", "kcryptd"), 0);
    EXPECT_EQ(of("workqueue_maydays_total", "writeback"), 4);
    EXPECT_EQ(of("workqueue_rescued_total", "writeback"), 3);
    EXPECT_EQ(of("workqueue_in_flight", "writeback"), 2);
    EXPECT_EQ(of("workqueue_stalled_seconds", "writeback"), 60.5);
    EXPECT_EQ(of("cpu_hogs_total", "events"), 0);
    EXPECT_EQ(all.at("wq_tuned_workqueues_unnamed"), 0);
    EXPECT_THAT(text(), Not(HasSubstr("rescued_total{workqueue=\"kcryptd\"}"))) << "it has no rescuer";
    EXPECT_THAT(text(), Not(HasSubstr("(others)")));
}

// ---- the file

constexpr const char* kFile = "/srv/metrics/wq.prom";
constexpr const char* kRecord = "run/wq-tuned/textfile";

class MetricsFileTest : public testing::Test {
  protected:
    [[nodiscard]] MetricsFile daemon() {
        MetricsFile out(Paths{tree_.root()}, log_, writer_);
        out.recall();
        return out;
    }
    [[nodiscard]] ino_t inode() const {
        struct stat st = {};
        EXPECT_EQ(::stat(tree_.path(kFile).c_str(), &st), 0);
        return st.st_ino;
    }

    test::TempTree tree_{Dir("srv/metrics"), Dir("run/wq-tuned")};
    test::FakeLog log_;
    WriteAtOnce writer_;
};

// With the daemon, after a daemon that was killed, where the policy names no other.
TEST_F(MetricsFileTest, Goes) {
    for (const char* how : {"end", "kill", "policy"}) {
        SCOPED_TRACE(how);
        MetricsFile file = daemon();
        file.use("/srv/metrics/other.prom");
        file.show("a 1\n");
        EXPECT_EQ(tree_.read("srv/metrics/other.prom"), "a 1\n");
        file.use(kFile);
        EXPECT_FALSE(tree_.exists("srv/metrics/other.prom"));
        file.show("a 1\n");
        EXPECT_EQ(tree_.read(kFile), "a 1\n");
        if (*how == 'e') file.remove();
        if (*how == 'k') daemon().remove();
        if (*how == 'p') file.use("");
        EXPECT_FALSE(tree_.exists(kFile));
        EXPECT_FALSE(tree_.exists(kRecord));
    }
}

TEST_F(MetricsFileTest, IsWrittenOnlyWhereItChanged) {
    MetricsFile file = daemon();
    file.use(kFile);
    file.show("a 1\n");
    const ino_t first = inode();
    file.show("a 1\n");
    EXPECT_EQ(inode(), first);
    file.show("a 2\n");
    tree_.remove(kFile);  // by another program
    file.show("a 2\n");
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
    EXPECT_THAT(log_.lines, testing::IsEmpty());
    tree_.add(Dir("srv/metrics/wq.prom.new"));  // prevents the new file
    file.show("a 3\n");
    EXPECT_FALSE(tree_.exists(kFile)) << "what is no longer true does not stay";
    EXPECT_THAT(log_.lines, SizeIs(1));
}

TEST_F(MetricsFileTest, AfterARestartTheNextOneGoesOnWithIt) {
    {
        MetricsFile file = daemon();
        file.use(kFile);
        file.show("a 1\n");
    }
    MetricsFile next = daemon();
    EXPECT_TRUE(next.is_wanted()) << "also where it cannot read its policy";
    next.use(kFile);
    EXPECT_EQ(tree_.read(kFile), "a 1\n") << "without a gap";
    next.show("a 2\n");
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
}

TEST_F(MetricsFileTest, AnErrorIsSaidOnceUntilItIsAnother) {
    MetricsFile file = daemon();
    file.use(kFile);
    tree_.remove("srv/metrics");
    for (int i = 0; i < 3; i++) file.show("a 1\n");
    ASSERT_THAT(log_.lines, SizeIs(1));
    EXPECT_EQ(log_.lines[0].event, Event::metrics_failed);
    EXPECT_EQ(log_.lines[0].priority, LOG_WARNING);
    EXPECT_THAT(log_.lines[0].text, testing::HasSubstr(kFile));
    tree_.write("srv/metrics", "no folder");
    file.show("a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(2));
    tree_.remove("srv/metrics");
    tree_.add(Dir("srv/metrics"));
    file.show("a 1\n");
    EXPECT_EQ(tree_.read(kFile), "a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(2));
    tree_.remove("srv/metrics");
    file.show("a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(3)) << "it had worked in between";
}

TEST_F(MetricsFileTest, ASlowDiskIsNotWaitedFor) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    file.show("a 2\n");
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_EQ(slow.waiting(), 1U) << "the newest is enough";
    slow.answer();
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
    file.show("a 3\n");
    file.remove();
    EXPECT_TRUE(tree_.exists(kRecord)) << "as long as the file may be there";
    slow.answer();
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_FALSE(tree_.exists(kRecord));
}

// Like several reloads while the disk does not answer.
TEST_F(MetricsFileTest, AFileThatIsWantedAgainStays) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    for (const char* path : {"/srv/metrics/other.prom", kFile}) {
        file.use(path);
        file.show("a 1\n");
    }
    slow.answer();
    EXPECT_EQ(tree_.read(kFile), "a 1\n");
    EXPECT_FALSE(tree_.exists("/srv/metrics/other.prom"));
    EXPECT_EQ(tree_.read(kRecord), std::string(kFile) + "\n");
}

TEST_F(MetricsFileTest, ARemovalThatComesLateLeavesTheRecordOfTheNextFile) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    slow.answer();
    file.use("/srv/metrics/other.prom");
    file.show("a 1\n");
    slow.answer();
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_EQ(tree_.read("/srv/metrics/other.prom"), "a 1\n");
    EXPECT_EQ(tree_.read(kRecord), "/srv/metrics/other.prom\n");
}

}  // namespace
}  // namespace wq
