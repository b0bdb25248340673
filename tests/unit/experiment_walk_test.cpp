// SPDX-License-Identifier: LGPL-2.1-or-later
// Many targets and long periods, with simulated counters and clocks; the slots of the watch.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "fake_experiment.h"

namespace wq {
namespace {

using test::fixed;
using test::rule_for_all;

// ---- experiment walk

class ExperimentWalk : public test::ExperimentRig {
  protected:
    // Adds N busy targets "wq-a", "wq-b" and so on, each of its own class.
    void add_targets(unsigned n) {
        std::vector<test::Entry> entries;
        std::set<std::string> names;
        for (unsigned i = 0; i < n; i++) {
            const std::string name = "wq-" + std::string(1, static_cast<char>('a' + i));
            entries.push_back(test::workqueue(name, {.cpumask = "ffffff"}));
            names.insert(name);
        }
        tree_.add(test::Dir("sys/devices/virtual/workqueue", std::move(entries)));
        use_traffic(names);
    }
    unsigned measured_ = 0;  // index of the window being read
    // Under smt kcryptd costs OWN. Meanwhile, writeback costs OTHERS.
    void let_kcryptd_disturb(double own, double others) {
        cost_ = [=, this](const std::string& name, const std::string& word) {
            if (name == "kcryptd") return word == "smt" ? own : 1.0;
            return word_["kcryptd"][measured_] == "smt" ? others : 1.0;
        };
        counters_.count = [this](const std::string& target, unsigned slot) {
            measured_ = slot;
            return window(target, word_[target][slot]);
        };
        start(smt_alone());
    }
    [[nodiscard]] bool is_settled(const std::string& name) const {
        const auto now = view(name);
        return !now || now->course != Course::dense;
    }
    [[nodiscard]] bool all_settled() const {
        for (const auto& [name, n] : counters_.items)
            if (!is_settled(name)) return false;
        return true;
    }
};

// The bound with the shipped policy: all of sixteen busy targets are decided or sparse within 30 minutes. A
// third of them gain by smt, a third lose by it, and a third have no effect.
TEST_F(ExperimentWalk, SixteenBusyTargetsAreDecidedOrSparseWithinHalfAnHour) {
    add_targets(16);
    noise_ = 0.03;
    cost_ = [](const std::string& name, const std::string& word) {
        if (word == "default" || word == "cache") return 1.0;
        const int kind = name.back() % 3;
        return kind == 0 ? 0.92 : kind == 1 ? 1.08 : 1.0;
    };
    Policy policy = tune();
    policy.judge.jitter = std::chrono::seconds(60);
    start(policy);
    EXPECT_TRUE(run_to_verdict(300)) << "the first one within five minutes";
    EXPECT_TRUE(run_until([this] { return all_settled(); }, 1800 - static_cast<double>(now_ - began_) / 1e6));
    RecordProperty("minutes", std::to_string((now_ - began_) / 60'000'000));
    for (const auto& [name, n] : counters_.items) {
        const bool gains = name.back() % 3 == 0;
        EXPECT_EQ(scope(name) != "default (cache)", gains) << name << ": " << scope(name);
    }
    EXPECT_GT(experiment_->totals().improved, 4U);
    EXPECT_EQ(experiment_->totals().taken_back, 0U);
}

// Each of eight targets makes the others cost 2% more while it runs its candidate. That is noise: verdicts of
// worse or better must not be more frequent than alpha.
TEST_F(ExperimentWalk, TargetsThatDisturbEachOtherAreSeldomWronglyDecided) {
    add_targets(8);
    noise_ = 0.03;
    cost_ = [this](const std::string& name, const std::string&) {
        double out = 1;
        for (const auto& [other, n] : counters_.items)
            if (other != name && word_[other][measured_] == "smt") out *= 1.02;
        return out;
    };
    counters_.count = [this](const std::string& target, unsigned slot) {
        measured_ = slot;
        return window(target, word_[target][slot]);
    };
    start(smt_alone());
    ASSERT_TRUE(run_until([this] { return all_settled(); }, 1800));
    EXPECT_LE(experiment_->totals().regressed + experiment_->totals().improved, 1U);
    EXPECT_GE(experiment_->totals().undecided, 7U);
}

TEST_F(ExperimentWalk, WhatCostsTheOthersMoreRegressesAlsoIfItIsBetterItself) {
    for (const double own : {0.8, 1.0}) {
        std::filesystem::remove_all(tree_.path("var/lib/wq-tuned"));
        let_kcryptd_disturb(own, 1.1);
        ASSERT_TRUE(run_to_verdict(600));
        EXPECT_EQ(last().target, "kcryptd");
        EXPECT_EQ(last().outcome, Judgement::regressed);
        EXPECT_EQ(last().standing.counter, "others");
        EXPECT_NEAR(last().standing.effect.percent, 10, 1.5);
        run(30);
        EXPECT_EQ(state("kcryptd"), State::reverted);
        EXPECT_EQ(scope("kcryptd"), "default (cache)");
        EXPECT_THAT(reason("kcryptd"), testing::HasSubstr("smt against cache: regressed, others "));
        ASSERT_TRUE(run_until([this] { return is_settled("writeback"); }, 1800));
        EXPECT_EQ(entry("writeback", "cache", "smt")->judgement, Judgement::undecided);
        EXPECT_EQ(experiment_->totals().improved, 0U);
    }
}

TEST_F(ExperimentWalk, WhatCostsTheOthersOnePercentMoreMayImprove) {
    let_kcryptd_disturb(0.8, 1.01);
    ASSERT_TRUE(run_to_verdict(600));
    EXPECT_EQ(last().target, "kcryptd");
    EXPECT_EQ(last().outcome, Judgement::improved);
    const auto& others = entry("kcryptd", "cache", "smt")->columns.back();
    EXPECT_EQ(others.counter.name, "others");
    EXPECT_EQ(others.worse.count, last().standing.pairs);
    EXPECT_NEAR(others.sum / static_cast<double>(others.worse.count), 0.01, 0.01);
}

// Half of the windows of the candidate are lost. It is better in the others, but must not be kept.
TEST_F(ExperimentWalk, WindowsLostOnPurposeNeverHelpTheirArm) {
    use_traffic({"kcryptd"});
    costs("smt", 0.98);
    noise_ = 0.02;
    start(smt_alone());
    counters_.count = [this](const std::string& target, unsigned slot) {
        WorkCount out = window(target, word_[target][slot]);
        if (word_[target][slot] == "smt" && random_.coin()) out.items = 0;
        return out;
    };
    (void)run_to_verdict(1800);
    EXPECT_GT(experiment_->totals().windows_lost, 3U);
    EXPECT_EQ(experiment_->totals().improved, 0U);
    EXPECT_EQ(entry("kcryptd", "cache", "smt")->columns[0].last.empty(), false);
}

// cache and numa make the same pools on this machine with one LLC. A window that begins with a write of the
// word in place would find warm pools. So both windows begin with a change.
TEST_F(ExperimentWalk, TwoWordsForOnePartitionShowNoDifference) {
    use_traffic({"kcryptd"});
    std::string before = "default";
    bool warm = false;
    files_->on_write = [&](const std::string&, const std::string& word) {
        warm = word == before;
        before = word;
        return 0;
    };
    counters_.on_begin = [&](const std::string& target, unsigned slot) {
        word_[target][slot] = warm ? "warm" : "cold";
        begun_[target] = now_;
    };
    cost_ = [](const auto&, const std::string& word) { return word == "warm" ? 0.8 : 1.0; };
    noise_ = 0.02;
    ASSERT_TRUE(experiment_->order("kcryptd", "numa"));
    ASSERT_TRUE(run_to_verdict(1800));
    EXPECT_EQ(last().outcome, Judgement::undecided);
    EXPECT_EQ(last().key.candidate, "numa");
    ASSERT_TRUE(last().standing.effect.interval);
    EXPECT_LE(last().standing.effect.interval->low, 0);
    EXPECT_GE(last().standing.effect.interval->high, 0);
}

// Whatever interrupts the daemon, no comparison on disk is lost, and no pair counts twice.
TEST_F(ExperimentWalk, StopsKillsRebootsPausesAndReloadsLoseNothingAndRepeatNothing) {
    for (std::uint64_t seed = 1; seed <= 6; seed++) {
        std::filesystem::remove_all(tree_.path("var/lib/wq-tuned"));
        parts_->engine.restore_all();
        random_ = Random(seed);
        noise_ = 0.2;  // stays undecided for a long time
        use_traffic({"kcryptd", "writeback"});
        start(smt_alone());
        std::uint64_t measured = 0;  // pairs and lost windows of both comparisons, summed over all daemons
        std::map<std::string, std::uint64_t> known{{"kcryptd", 0}, {"writeback", 0}};  // pairs in the ledger
        // Since the last call each comparison got at most MOST pairs, and lost at most LOST. Returns how many
        // both got.
        const auto got = [&](std::uint64_t most, std::uint64_t lost = 0) {
            std::uint64_t out = 0;
            for (auto& [kind, pairs] : known) {
                const LedgerEntry* one = entry(kind, "cache", "smt");
                const std::uint64_t now = one == nullptr ? 0 : one->columns[0].worse.count;
                EXPECT_LE(now, pairs + most) << kind << ", seed " << seed;
                EXPECT_GE(now + lost, pairs) << kind << ", seed " << seed;
                out += now - std::min(now, pairs);
                pairs = now;
            }
            return out;
        };
        for (int i = 0; i < 60; i++) {
            const ExperimentTotals before = experiment_->totals();
            run(5 + static_cast<double>(random_.bits() % 40));
            const std::uint64_t added = experiment_->totals().pairs - before.pairs;
            EXPECT_LE(got(added + 1), added + 2) << "seed " << seed;
            measured += added;
            switch (random_.bits() % 5) {
                case 0:  // a stop adds at most the window that it cuts off
                    experiment_->cancel_all("stopped");
                    measured += got(1);
                    parts_->engine.restore_all();
                    start(smt_alone());
                    got(0);
                    break;
                case 1:  // kill -9 loses at most the pairs of a minute and may add one window
                    start(smt_alone());
                    got(1, 14);
                    measured += 2;
                    break;
                case 2:  // a reboot: /run is empty, and the scopes are those of the kernel
                    experiment_->cancel_all("stopped");
                    measured += got(1);
                    parts_->engine.restore_all();
                    std::filesystem::remove_all(tree_.path("run/wq-tuned"));
                    std::filesystem::create_directories(tree_.path("run/wq-tuned"));
                    start(smt_alone());
                    got(0);
                    break;
                case 3:  // the slot that ran ends
                    experiment_->pause(true);
                    run(30);
                    measured += got(1);
                    experiment_->pause(false);
                    break;
                default:
                    use(parts_->targets.policy());
                    measured += got(1);
            }
            ASSERT_LE(known["kcryptd"] + known["writeback"], measured) << "seed " << seed << ", step " << i;
        }
        for (const auto& [kind, pairs] : known) EXPECT_GT(pairs, 64U) << kind;
    }
}

// Whatever happens while slots run: no value of an external writer is overwritten, each baseline is on disk
// before the first write, a slot leaves nothing behind, and in the end everything is as it was.
TEST_F(ExperimentWalk, WhateverHappensNothingForeignIsOverwrittenAndAllIsPutBack) {
    const std::vector<std::string> names = {"kcryptd", "writeback", "kcryptd-254:0", "kcryptd-254:1"};
    add_class();
    use_traffic({names.begin(), names.end()});
    cost_ = [](const auto&, const std::string& word) { return word == "smt" ? 0.95 : 1.0; };
    std::map<std::string, std::string> foreign;
    for (std::uint64_t seed = 1; seed <= 6; seed++) {
        SCOPED_TRACE(seed);
        std::filesystem::remove_all(tree_.path("var/lib/wq-tuned"));
        random_ = Random(seed);
        start(tune());
        const auto pick = [this](const auto& all) { return all[random_.bits() % all.size()]; };
        for (int i = 0; i < 80; i++) {
            files_->on_write = [&](const std::string& name, const std::string& word) {
                EXPECT_FALSE(foreign.contains(name)) << name << " = " << word;
                EXPECT_TRUE(on_disk().contains(name)) << name;
                const bool fails = word != "default" && random_.bits() % 50 == 0;
                return !fails ? 0 : random_.coin() ? EBUSY : EINVAL;
            };
            run(0.2 + static_cast<double>(random_.bits() % 90) / 10);
            const std::string name = pick(names);
            const std::string scope = pick(std::vector<std::string>{"cpu", "smt", "numa", "system"});
            switch (random_.bits() % 10) {
                case 0:
                case 1:
                    if (scope == word_of(name)) break;
                    set_scope(name, scope);
                    foreign[name] = scope;
                    if (random_.coin()) reconcile();
                    break;
                case 2:  // kill -9. Where there is no entry, the next daemon takes what it finds for the
                         // kernel's
                    for (const auto& [each, word] : foreign)
                        if (!on_disk().contains(each)) reconcile();
                    start(tune());
                    break;
                case 3:
                    (void)parts_->orders.pin(name, scope);
                    break;
                case 4:
                    (void)parts_->orders.unpin(name);
                    break;
                case 5:
                    (void)parts_->orders.revert(random_.coin() ? std::optional(name) : std::nullopt);
                    break;
                case 6:
                    (void)experiment_->order(name, scope);
                    break;
                case 7:
                    recreate(name);
                    std::filesystem::remove_all(tree_.path("old-" + name));
                    foreign.erase(name);
                    break;
                case 8:  // what was put back is ours to set again after a reload
                    for (const auto& [each, word] : foreign) set_scope(each, "default (cache)");
                    foreign.clear();
                    use(tune());
                    break;
                default:
                    experiment_->pause(random_.coin());
                    parts_->targets.observe(random_.bits() % 4 == 0 ? "a test" : "");
            }
            experiment_->check();
            for (const auto& [each, word] : foreign) EXPECT_EQ(word_of(each), word) << each << ", step " << i;
        }
        files_->on_write = nullptr;
        parts_->targets.observe("");
        experiment_->cancel_all("stopped");
        reconcile();
        parts_->engine.restore_all();
        EXPECT_FALSE(tree_.exists("run/wq-tuned/slot.json"));
        for (const std::string& name : names) {
            EXPECT_EQ(word_of(name), foreign.contains(name) ? foreign[name] : "default") << name;
            set_scope(name, "default (cache)");
        }
        foreign.clear();
        std::filesystem::remove(tree_.path("run/wq-tuned/owned.json"));
    }
}

// ---- experiment watch

class ExperimentWatch : public test::ExperimentRig {
  protected:
    // kcryptd costs FACTOR under smt; nothing else has an effect.
    void kcryptd_costs(double factor) {
        cost_ = [=](const std::string& name, const std::string& word) {
            return name == "kcryptd" && word == "smt" ? factor : 1.0;
        };
    }
    // Runs until kcryptd is kept, with a gain that is too small for a longer recheck.
    void keep_kcryptd(const Policy& policy) {
        kcryptd_costs(0.95);
        start(policy);
        ASSERT_TRUE(run_until([this] { return experiment_->totals().improved > 0; }, 7200));
        ASSERT_EQ(view("kcryptd")->course, Course::watched);
    }
    [[nodiscard]] const LedgerEntry& kept() const { return *entry("kcryptd", "cache", "smt"); }
    [[nodiscard]] std::uint64_t kept_pairs() const { return kept().columns[0].worse.count; }
    // Seconds until the next pair of kcryptd has ended.
    double next_pair() {
        const std::uint64_t from = now_;
        const std::uint64_t pairs = kept_pairs();
        EXPECT_TRUE(run_until([&] { return kept_pairs() != pairs; }, 7200));
        return static_cast<double>(now_ - from) / 1e6;
    }
};

// A pair per recheck while M is at most 10. Above that, one in each slot, until the doubt or the scope is
// gone.
TEST_F(ExperimentWatch, InDoubtThereIsAPairInEverySlot) {
    use_traffic({"kcryptd"});
    keep_kcryptd(smt_alone());
    (void)next_pair();
    for (int i = 0; i < 12; i++) EXPECT_NEAR(next_pair(), 600, 75);
    kcryptd_costs(1.05);
    unsigned sparse = 0;
    unsigned dense = 0;
    double in_doubt = 0;
    for (; dense + sparse < 100 && experiment_->totals().taken_back == 0;) {
        const bool doubts = watch_log(kept()) > std::log(10);
        const double passed = next_pair();
        (doubts ? dense : sparse)++;
        if (doubts) {
            EXPECT_LT(passed, 75) << "a long pair takes 61 s";
            in_doubt += passed;
        } else {
            EXPECT_NEAR(passed, 600, 75);
        }
    }
    EXPECT_EQ(experiment_->totals().taken_back, 1U);
    EXPECT_GE(sparse, 5U);
    EXPECT_GE(dense, 8U);
    EXPECT_LT(in_doubt, 600);
}

TEST_F(ExperimentWatch, DoubtThatPassesEndsThePairsInEverySlot) {
    use_traffic({"kcryptd"});
    keep_kcryptd(smt_alone());
    kcryptd_costs(1.05);
    ASSERT_TRUE(run_until([this] { return watch_log(kept()) > std::log(10); }, 86'400));
    kcryptd_costs(0.95);
    ASSERT_TRUE(run_until([this] { return watch_log(kept()) <= std::log(10); }, 600));
    (void)next_pair();
    EXPECT_NEAR(next_pair(), 600, 75);
    EXPECT_EQ(experiment_->totals().taken_back, 0U);
}

// writeback is compared all the time. In the slots of the watch it keeps its scope and is not counted.
TEST_F(ExperimentWatch, AWatchedTargetIsAloneInItsSlot) {
    Policy policy = smt_alone();
    policy.judge.settings.max_pairs = 100'000;
    keep_kcryptd(policy);
    unsigned watched = 0;
    unsigned others = 0;
    for (int i = 0; i < 2'000 && watched < 4; i++) {
        ASSERT_TRUE(run_to_slot());
        counters_.asked.clear();
        files_->asked.clear();
        const std::uint64_t before = kept_pairs();
        run_slot();
        std::vector<std::string> begun;
        std::ranges::copy_if(counters_.asked, std::back_inserter(begun),
                             [](const std::string& one) { return one.starts_with("begin "); });
        if (kept_pairs() == before) {
            EXPECT_THAT(begun, testing::ElementsAre("begin writeback 0", "begin writeback 1"));
            others++;
            continue;
        }
        watched++;
        EXPECT_THAT(begun, testing::ElementsAre("begin kcryptd 0", "begin kcryptd 1"));
        EXPECT_THAT(files_->asked, testing::AllOf(testing::Not(testing::IsEmpty()),
                                                  testing::Each(testing::StartsWith("kcryptd="))));
    }
    EXPECT_EQ(watched, 4U);
    EXPECT_GT(others, 100U);
    EXPECT_EQ(view("writeback")->course, Course::dense);
}

// A rule that names a scope: it is in force from the start, compared all along, and taken back if it
// regresses.
TEST_F(ExperimentWatch, WhatIsSetFirstIsTakenBackWhenItRegresses) {
    costs("smt", 1.3);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt") << "before the first pair";
    run_slot();
    EXPECT_EQ(scope("kcryptd"), "smt") << "after a slot, too";
    EXPECT_FALSE(entry("kcryptd", "cache", "smt")->watch.empty())
        << "the detector is beside it from the first pair";
    ASSERT_TRUE(run_until([this] { return experiment_->totals().taken_back > 0; }, 600));
    EXPECT_EQ(entry("kcryptd", "cache", "smt")->judgement, Judgement::regressed);
    run(10);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    run(60);
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "the ledger's `regressed` beats the rule";
    ScopeWish held = fixed(Scope::smt);
    held.hold = true;
    use(at_once(rule_for_all(held)));
    const auto pairs = experiment_->totals().pairs;
    run(60);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(experiment_->totals().pairs, pairs);
}

TEST_F(ExperimentWatch, WhatIsHeldIsComparedByOrderAndNotTakenBack) {
    costs("smt", 1.3);
    ScopeWish held = fixed(Scope::smt);
    held.hold = true;
    start(at_once(rule_for_all(held)));
    parts_->engine.reconcile();
    ASSERT_TRUE(experiment_->order("kcryptd", "smt"));
    ASSERT_TRUE(run_until([this] { return experiment_->totals().regressed > 0; }, 600));
    EXPECT_EQ(experiment_->totals().taken_back, 0U);
    EXPECT_EQ(last().reason, "");
    run(10);
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(ExperimentWatch, AnAlarmTakesNothingBackThatIsHeld) {
    ScopeWish held = fixed(Scope::smt);
    held.hold = true;
    start(at_once(rule_for_all(held)));
    costs("smt", 0.9);
    ASSERT_TRUE(experiment_->order("kcryptd", "smt"));
    ASSERT_TRUE(run_until([this] { return experiment_->totals().improved > 0; }, 600));
    costs("smt", 1.3);
    ASSERT_TRUE(experiment_->order("kcryptd", "smt"));
    ASSERT_TRUE(run_until([this] { return experiment_->totals().regressed > 0; }, 1800));
    EXPECT_EQ(experiment_->totals().taken_back, 0U);
    EXPECT_EQ(last().reason, "");
}

TEST_F(ExperimentWatch, WhatIsSetFirstAndImprovesIsKept) {
    costs("smt", 0.9);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    ASSERT_TRUE(run_until([this] { return experiment_->totals().improved > 0; }, 900));
    run(10);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
}

// A second of budget is a second of work that is lost, so what costs 60 times as much is decided on the first
// day.
TEST_F(ExperimentWatch, WhatIsFarWorseIsDecidedWithinTheBudget) {
    costs("smt", 60);
    start(smt_alone());
    ASSERT_TRUE(run_until([this] { return experiment_->totals().regressed > 0; }, 5 * 3600));
    EXPECT_LE(entry("kcryptd", "cache", "smt")->columns[0].worse.count, 9U);
    EXPECT_LT(experiment_->totals().lost_today, 60);
}

}  // namespace
}  // namespace wq
