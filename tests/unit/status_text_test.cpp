// SPDX-License-Identifier: LGPL-2.1-or-later
// How the status document shows comparisons and the host, and how the commands print them from it.
#include "ctl/render/status_text.h"

#include <gmock/gmock.h>
#include <pty.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "ctl/options.h"
#include "fake_experiment.h"
#include "service_rig.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

class ProgressTest : public test::ExperimentRig {
  protected:
    [[nodiscard]] json status() const { return status_json(parts_->engine, experiment_.get(), "running"); }
    [[nodiscard]] json experiments() const { return status().at("daemon").at("experiments"); }
    [[nodiscard]] json target_of(const std::string& name) const {
        const json document = status();
        for (const json& target : document.at("targets"))
            if (target.at("name") == name) return target;
        return json::object();
    }
    [[nodiscard]] json trial_of(const std::string& name) const { return target_of(name).at("comparison"); }
    [[nodiscard]] std::string summary() const { return ctl::comparisons_text(status(), wall_); }
};

TEST_F(ProgressTest, FromNoPairToASlotOrAPause) {
    EXPECT_TRUE(trial_of("@default").is_null());
    EXPECT_TRUE(target_of("@default").at("outcome").is_null());
    const json trial = trial_of("kcryptd");
    for (const auto& [key, value] : std::map<std::string, json>{{"reference", "cache"},
                                                                {"candidate", "smt"},
                                                                {"course", "dense"},
                                                                {"pairs", 0},
                                                                {"max_pairs", 64},
                                                                {"budget_seconds", 60},
                                                                {"effect_percent", nullptr},
                                                                {"phase", "waiting"}})
        EXPECT_EQ(trial.at(key), value) << key;
    EXPECT_THAT(summary(), testing::StartsWith("0 of 3 targets: nothing compared yet; "));
    ASSERT_TRUE(run_to_slot());
    EXPECT_EQ(trial_of("kcryptd").at("phase"), "measuring");
    EXPECT_EQ(trial_of("kcryptd").at("reason"), "");
    EXPECT_EQ(experiments().at("measuring"), 2);
    EXPECT_THAT(summary(), EndsWith("; measuring 2 now"));
    run_slot();
    experiment_->pause(true);
    EXPECT_THAT(summary(), EndsWith("; no pair now: paused by `wq-tunectl pause`"));
    EXPECT_EQ(trial_of("kcryptd").at("reason"), "paused by `wq-tunectl pause`");
}

TEST_F(ProgressTest, EvidenceGrowsAndTheVerdictIsCounted) {
    costs("smt", 0.8);
    EXPECT_TRUE(target_of("kcryptd").at("contention").is_null());
    EXPECT_TRUE(ctl::contention_lines(target_of("kcryptd")).empty());
    for (int i = 0; i < 5; i++) run_slot();
    EXPECT_EQ(target_of("kcryptd").at("contention").at("reference").at("lock_ns"), 0);
    const auto lines = ctl::contention_lines(target_of("kcryptd"));
    ASSERT_EQ(lines.size(), 1U) << "kworkers are not known";
    EXPECT_THAT(lines[0].second, EndsWith(": a scope finer than cache can hardly gain by the lock"));
    json damaged = target_of("kcryptd");
    damaged["contention"]["reference"] = 7;
    EXPECT_TRUE(ctl::contention_lines(damaged).empty());
    const json trial = trial_of("kcryptd");
    EXPECT_EQ(trial.at("pairs"), 5);
    EXPECT_EQ(trial.at("counter"), "latency");
    EXPECT_NEAR(trial.at("effect_percent").get<double>(), -20, 3);
    EXPECT_GT(trial.at("e_improved").get<double>(), 2);
    EXPECT_EQ(target_of("kcryptd").at("outcome"), "undecided");
    EXPECT_THAT(ctl::progress_text(trial, wall_),
                AllOf(testing::StartsWith("e-value "), HasSubstr(" that smt is better than cache, latency "),
                      HasSubstr("% better in 5 of 64 pairs; ")));
    ASSERT_TRUE(run_until([&] { return target_of("kcryptd").at("outcome") == "improved"; }));
    EXPECT_EQ(target_of("kcryptd").at("verdict").at("verdict"), "improved");
    EXPECT_EQ(experiments().at("reason"), nullptr);
    EXPECT_GT(experiments().at("pairs"), 5);
}

// From `status`: before 16 pairs since the verdict, after them, after the watch took it back.
TEST_F(ProgressTest, WorthIsMeasuredAfterTheVerdict) {
    const auto worth = [&] {
        return worth_json(parts_->targets, experiment_->ledger(), verdicts_->records(), wall_);
    };
    start_alone();
    EXPECT_EQ(worth()["moved"], 0);
    EXPECT_EQ(worth()["targets"], 3);
    EXPECT_TRUE(worth()["classes"].empty());
    costs("smt", 0.92);  // not beyond 10%: the watch would slow down
    ASSERT_TRUE(run_to_verdict());
    ASSERT_EQ(scope("kcryptd"), "smt");
    json now = worth();
    EXPECT_EQ(now["moved"], 1);
    ASSERT_EQ(now["classes"].size(), 1U);
    EXPECT_EQ(now["classes"][0]["pairs"], 0) << "those before the verdict decided";
    EXPECT_TRUE(now["classes"][0]["effect_percent"].is_null());
    EXPECT_TRUE(now["classes"][0]["since"].is_null());
    costs("smt", 0.95);
    const auto pairs = [&] {
        const auto& after = entry("kcryptd", "cache", "smt")->after;
        return after.empty() ? 0 : after[0].pairs;
    };
    ASSERT_TRUE(run_until([&] { return pairs() >= 16; }, 86'400));
    now = worth()["classes"][0];
    EXPECT_EQ(now["class"], "kcryptd");
    EXPECT_EQ(now["scope"], "smt");
    EXPECT_EQ(now["counter"], "latency");
    EXPECT_NEAR(now["effect_percent"].get<double>(), -5, 1) << "and not the 8% of the verdict";
    EXPECT_LT(now["interval_percent"][0], now["effect_percent"]);
    EXPECT_GE(now["since"].get<std::int64_t>(), last().time);
    EXPECT_GT(now["until"], now["since"]);
    ASSERT_TRUE(run_until([this] { return experiment_->is_measuring(); }, 86'400));
    EXPECT_EQ(worth()["moved"], 1) << "also in a slot";
    run_slot();
    EXPECT_EQ(worth()["taken_back_this_month"], 0);
    costs("smt", 1.5);
    ASSERT_TRUE(run_until([this] { return experiment_->totals().taken_back > 0; }, 2 * 86'400));
    run(30);
    EXPECT_EQ(worth()["moved"], 0);
    EXPECT_TRUE(worth()["classes"].empty());
    EXPECT_EQ(worth()["taken_back_this_month"], 1);
}

// An order and @default move targets that nothing is known of.
TEST_F(ProgressTest, WorthCountsWhatAnOrderOrDefaultMoves) {
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "smt"));
    json now = worth_json(parts_->targets, experiment_->ledger(), {}, wall_);
    EXPECT_EQ(now["moved"], 1);
    EXPECT_TRUE(now["classes"].empty());
    ASSERT_TRUE(parts_->orders.unpin("kcryptd"));
    ASSERT_TRUE(parts_->orders.pin(kDefaultTarget, "smt"));
    reconcile();
    EXPECT_EQ(worth_json(parts_->targets, experiment_->ledger(), {}, wall_)["moved"], 3)
        << "with its two followers";
    ASSERT_TRUE(parts_->orders.unpin(kDefaultTarget));
    reconcile();
    set_scope("writeback", "cpu");
    reconcile();
    EXPECT_EQ(worth_json(parts_->targets, experiment_->ledger(), {}, wall_)["moved"], 0)
        << "an external writer's";
}

TEST(ProgressText, SaysTheEvidenceAndWhenTheNextPairComes) {
    const json base{{"candidate", "smt"},
                    {"reference", "cache"},
                    {"counter", "latency"},
                    {"pairs", 1},
                    {"interval_percent", {-5, -1.2}}};
    const auto effect = [](json changes) {
        changes["effect_percent"] = -3.14;
        changes["e_improved"] = 30;
        return changes;
    };
    for (const auto& [changes, text] : std::vector<std::pair<json, std::string>>{
             {{{"e_improved", 12.3}}, "e-value 12 that smt is better than cache"},
             {{{"e_improved", 0.1}, {"e_regressed", 2}}, "e-value 2 that smt is worse than cache"},
             {{{"e_improved", 1.9}}, "smt against cache: no evidence yet"},
             {{{"e_improved", 1e300}}, "e-value above 10000 that smt is better than cache"},
             {effect({{"course", "watched"},
                      {"pairs", 70},
                      {"next_pair", 1240},
                      {"reason", "its next pair is not due"}}),
              "watched: e-value 30 that smt is better than cache, latency 3.1% better (1.2 to 5) in 70 "
              "pairs; next pair in 4 min"},
             {effect({{"course", "dense"}, {"next_pair", 10}, {"max_pairs", 64}, {"reason", "EIO"}}),
              "e-value 30 that smt is better than cache, latency 3.1% better (1.2 to 5) in 1 of 64 pairs; "
              "next pair now (EIO)"},
             {effect({{"course", "dense"}, {"max_pairs", 64}, {"reason", "not busy"}}),
              "e-value 30 that smt is better than cache, latency 3.1% better (1.2 to 5) in 1 of 64 pairs; "
              "waits: not busy"},
             {effect({{"course", "resting"}, {"next_pair", 1000 + 29 * 86400}, {"reason", "it regressed"}}),
              "e-value 30 that smt is better than cache, latency 3.1% better (1.2 to 5) in 1 pair; rests (it "
              "regressed), next pair in 29 days"}}) {
        json trial = base;
        trial.update(changes);
        EXPECT_EQ(ctl::progress_text(trial, 1000), text);
    }
}

TEST(ProgressText, TheSummaryCountsOutcomesAndSaysWhatIsWaitedFor) {
    json document = {
        {"daemon", {{"experiments", {{"measuring", 0}, {"reason", nullptr}, {"next_pair", 1240}}}}},
        {"targets", json::array()}};
    const auto text = [&] { return ctl::comparisons_text(document, 1000); };
    for (const char* outcome : {"improved", "regressed", "improved", "undecided", "improved"})
        document["targets"].push_back({{"outcome", outcome}});
    for (int i = 0; i < 9; i++) document["targets"].push_back({{"outcome", nullptr}});
    EXPECT_EQ(text(), "5 of 14 targets: 3 improved, 1 undecided so far, 1 regressed; next pair in 4 min");
    json& experiments = document["daemon"]["experiments"];
    experiments["next_pair"] = nullptr;
    EXPECT_THAT(text(), EndsWith("; nothing to compare"));
    const char* const budget = "its judge.budget for today is used up";
    for (const auto& [first, second, says] :
         {std::tuple{"not busy", "not busy", "waiting for traffic"},
          {budget, budget, "no pair now: its judge.budget for today is used up"},
          {budget, "external", "no pair now, for several reasons"},
          {budget, "it takes part in one of the next slots", "next pair soon"}}) {
        document["targets"][0]["comparison"]["reason"] = first;
        document["targets"][1]["comparison"]["reason"] = second;
        EXPECT_THAT(text(), EndsWith(std::string("; ") + says));
    }
    document["daemon"]["state"] = "observing";
    experiments["reason"] = "wq_tuned=off";
    EXPECT_THAT(text(), EndsWith("; no pair now")) << "status says why";
    document["targets"] = json::array();
    EXPECT_EQ(text(), "") << "status says why";
    experiments = nullptr;
    EXPECT_EQ(text(), "") << "without a daemon";
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

// The first lines of `status`: one for each of three classes, or all in one.
TEST(WorthText, SaysWhatTheScopesInForceAreWorth) {
    constexpr std::int64_t kNow = 1'797'000'000;  // 11 December 2026
    const auto part = [](const char* kind, std::uint64_t pairs, json effect, std::int64_t since,
                         std::int64_t until) {
        const json interval = effect.is_null() ? json(nullptr) : json{-37, -24};
        return json{{"class", kind},
                    {"scope", "smt"},
                    {"counter", "latency"},
                    {"effect_percent", effect},
                    {"interval_percent", interval},
                    {"pairs", pairs},
                    {"since", since},
                    {"until", until}};
    };
    const json good = part("kcryptd-#", 412, -31, kNow - 29 * 86'400, kNow - 60);
    const json old = part("writeback", 16, -31, kNow - 400 * 86'400, kNow - 40 * 86'400);
    const json young = part("nvme", 15, nullptr, kNow - 60, kNow);
    const json pinned = part("btrfs", 0, nullptr, 0, 0);
    const std::string good_text =
        "kcryptd-# on smt: latency 31% better (24 to 37) in windows of 2 s or more, 412 pairs since 12 "
        "November";
    const std::string old_text =
        "writeback on smt: latency 31% better (24 to 37) in windows of 2 s or more, 16 pairs from 6 November "
        "2025 to 1 November";
    const std::string young_text = "nvme on smt: latency not yet measured (15 of 16 pairs)";
    const std::string end = "; taken back this month: 1; lost to comparisons today: 4.2 s";
    struct Row {
        unsigned moved;
        std::vector<json> classes;
        std::vector<std::string> lines;
    };
    for (const auto& [moved, classes, lines] : std::vector<Row>{
             {0, {}, {"no target runs on another scope than the kernel's" + end}},
             {1, {good}, {"1 of 14 targets runs on another scope than the kernel's: " + good_text + end}},
             {5,
              {good, old, young, pinned, pinned},
              {"5 of 14 targets run on another scope than the kernel's" + end, good_text, old_text,
               young_text, "and 2 more"}}}) {
        json worth{{"targets", 14},       {"moved", moved},      {"classes", classes},
                   {"window_seconds", 2}, {"lost_today_s", 4.2}, {"taken_back_this_month", 1}};
        EXPECT_EQ(ctl::worth_lines({{"worth", worth}}, kNow), lines);
    }
    EXPECT_TRUE(ctl::worth_lines(json::object(), kNow).empty());
    EXPECT_TRUE(ctl::worth_lines({{"worth", nullptr}}, kNow).empty());
}

TEST(ProgressLine, IsOneLineHoweverNarrowOrOnADumbTerminalALineForEachChange) {
    const std::string long_text(60, 'x');
    EXPECT_EQ(shown_on("xterm"), "\r\033[K\033[?7lone\033[?7h\r\033[K\033[?7l" + long_text + "\033[?7h\r\n");
    EXPECT_EQ(shown_on("dumb"), "one\r\n" + long_text + "\r\n");
}

TEST(IsolationText, ShowsIsolatedCpus) {
    const auto text_of = [](const json& isolation) {
        ctl::Shown out;
        ctl::add_isolation(out, isolation);
        return out.text();
    };
    json isolation = {{"isolcpus", "2-3"},
                      {"nohz_full", ""},
                      {"partitions", {{{"type", "isolated"}, {"cpus", "4-5"}, {"cgroup", nullptr}}}},
                      {"partitions_complete", false}};
    EXPECT_THAT(text_of(isolation), AllOf(HasSubstr("isolated partition  4-5   (not found)\n"),
                                          HasSubstr("There are more cgroups than were looked at.\n")));
    isolation["isolcpus"] = "";
    isolation["partitions"] = json::array();
    EXPECT_EQ(text_of(isolation), "");
}

// ---- status.json: whom the command believes

constexpr const char* kStatus = "run/wq-tuned/status.json";
constexpr const char* kBoot = "proc/sys/kernel/random/boot_id";

std::string real(const std::string& path) {
    return read_file(path).value();
}

struct Ran {
    int code;
    std::string out;
};

Ran run_status(const test::TempTree& tree, bool as_json, const std::string& target = "") {
    ctl::Options options;
    options.root = tree.root();
    options.json = as_json;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = ctl::status(options, target);
    std::fflush(stdout);
    const std::string err = testing::internal::GetCapturedStderr();
    return {code, testing::internal::GetCapturedStdout() + err};
}

// A tree whose /proc has this boot and this process, the "daemon".
class StatusFile : public testing::Test {
  protected:
    StatusFile() {
        tree_.add(test::cpu_tree({.cores = 4, .threads = 2}));
        tree_.write(kBoot, real("/proc/sys/kernel/random/boot_id"));
        tree_.write(stat(), real("/proc/self/stat"));
        tree_.write(kStatus, status_text(document_));
    }
    static std::string stat() { return "proc/" + std::to_string(::getpid()) + "/stat"; }
    [[nodiscard]] std::string state() const {
        const Ran ran = run_status(tree_, true);
        const json document = json::parse(ran.out);
        EXPECT_EQ(ran.code, document["daemon"]["state"] == "absent" ? ctl::kNoDaemon : ctl::kOk);
        return document["daemon"]["state"];
    }

    test::TempTree tree_{test::kernel_tree({test::workqueue("kcryptd"), test::workqueue("writeback")})};
    json document_ = {{"daemon", {{"state", "running"}, {"mode", "tune"}, {"version", "9.9"}}},
                      {"targets",
                       {{{"name", "kcryptd"},
                         {"kind", "unbound"},
                         {"scope", "cpu"},
                         {"effective", "cpu"},
                         {"baseline", "default"},
                         {"planned", "smt"},
                         {"state", "kept"},
                         {"reason", "it improved"}},
                        {{"name", "gone"}, {"state", "waiting"}}}}};
};

// Each row: what is done to a tree in which a daemon runs. Then none runs.
TEST_F(StatusFile, OfWhoHasEndedIsNotBelieved) {
    const auto with = [this](const char* pointer, json value) {
        json document = json::parse(status_text(document_));
        document[json::json_pointer(pointer)] = std::move(value);
        tree_.write(kStatus, document.dump());
    };
    const std::vector<std::pair<const char*, std::function<void()>>> cases = {
        {"killed", [this] { tree_.remove(stat()); }},
        {"killed, and its parent does not care",
         [this] {
             std::string zombie = real("/proc/self/stat");
             tree_.write(stat(), zombie.replace(zombie.rfind(')') + 2, 1, "Z"));
         }},
        {"the pid belongs to another process now", [&] { with("/process/start_time", 1); }},
        {"another boot", [this] { tree_.write(kBoot, "00000000-0000-0000-0000-000000000000\n"); }},
        {"cut off", [this] { tree_.write(kStatus, status_text(document_).substr(0, 100)); }},
        {"empty", [this] { tree_.write(kStatus, ""); }},
        {"deep", [this] { tree_.write(kStatus, std::string(100'000, '[')); }},
        {"too large", [this] { ASSERT_EQ(::truncate(tree_.path(kStatus).c_str(), 1L << 31), 0); }},
        {"a folder", [this] { tree_.remove(kStatus), tree_.add(test::Dir(kStatus)); }},
        {"no state", [&] { with("/daemon/state", "excellent"); }},
        {"no targets", [&] { with("/targets", 7); }},
        {"a target without a name", [&] { with("/targets/0/name", nullptr); }},
        {"by hand: a text for a number",
         [&] {
             with("/targets/0/comparison", {{"pairs", "many"}, {"effect_percent", 1}});
         }},
        {"stopped", [this] { ASSERT_TRUE(restore_after_exit({tree_.root()})); }},
    };
    for (const auto& [what, change] : cases) {
        SCOPED_TRACE(what);
        tree_.remove(kStatus);
        tree_.write(kStatus, status_text(document_));
        tree_.write(stat(), real("/proc/self/stat"));
        tree_.write(kBoot, real("/proc/sys/kernel/random/boot_id"));
        ASSERT_EQ(state(), "running");
        change();
        const Ran text = run_status(tree_, false);
        EXPECT_EQ(text.code, ctl::kNoDaemon);
        EXPECT_THAT(text.out, HasSubstr(": not running, mode "));
    }
}

// However the file is damaged, the answer is a status: of a daemon, or that none runs.
TEST_F(StatusFile, ThatIsDamagedIsNeverAnError) {
    document_["targets"][0]["comparison"] = {{"reference", "cache"},
                                             {"candidate", "smt"},
                                             {"pairs", 12},
                                             {"effect_percent", -3.5},
                                             {"next_pair", 1700000000}};
    document_["targets"][0]["verdict"] = {{"verdict", "improved"}, {"candidate", "smt"}, {"pairs", 16}};
    document_["masks"] = {{{"name", "kcryptd"}, {"cpumask", "0-3"}}};
    document_["daemon"]["experiments"] = {{"measuring", 1}, {"next_pair", nullptr}};
    document_["daemon"]["policy"] = {{"state", "broken"}, {"since", 1700000000}, {"expired", {"a:1"}}};
    tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
    const std::string whole = status_text(document_);
    std::mt19937 random(36);
    const std::string bytes = "0\"[]{}:,x-\xff";
    for (int i = 0; i < 100; i++) {
        std::string text = whole;
        for (unsigned n = random() % 3 + 1; n > 0; n--) {
            const std::size_t at = random() % text.size();
            random() % 3 == 0 ? text.erase(at, random() % 8)
                              : text.replace(at, 1, 1, bytes[random() % bytes.size()]);
        }
        tree_.write(kStatus, text);
        SCOPED_TRACE(text);
        const Ran ran = run_status(tree_, i % 2 == 0);
        ASSERT_THAT(ran.code, testing::AnyOf(ctl::kOk, ctl::kNoDaemon));
    }
}

using StatusOfDaemon = test::ServiceTest;

// What could not be written is written once it can be: at the next event, not at the next change.
TEST_F(StatusOfDaemon, AFileThatCouldNotBeWrittenIsWrittenLater) {
    tree_.add(test::Dir(std::string(kStatus) + "/in the way"));
    test::Daemon daemon(tree_, test::usr1_is(Udev::Change::workqueue));
    ASSERT_TRUE(logged("status.json"));
    tree_.remove(kStatus);
    const auto since = std::chrono::steady_clock::now();
    daemon.send(SIGUSR1);
    EXPECT_TRUE(eventually([&] { return tree_.exists(kStatus); }));
    EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(20)) << "counts may take 30 s";
}

}  // namespace
}  // namespace wq
