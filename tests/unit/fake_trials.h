// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fake_counters.h"
#include "fake_rig.h"
#include "tuner/trials.h"

namespace wq::test {

// A Rig with trials: a clock that the test moves, a coin that it sees, and counters that it fills. Both
// workqueues have traffic; `auto` means smt.
class TrialRig : public Rig {
  protected:
    TrialRig() { begin(rule_for_all()); }

    static Policy guard(Policy policy) {
        policy.apply_unjudged = false;
        policy.judge.jitter = std::chrono::seconds(0);
        return policy;
    }
    // The daemon starts with this policy, made one of mode guard and without a random delay.
    void begin(const Policy& policy) {
        trials_.reset();
        restart();
        trials_ = std::make_unique<Trials>(Trials::Edges{
            .tuner = *tuner_,
            .counters = counters_,
            .verdicts = *verdicts_,
            .record = *record_,
            .log = log_,
            .paths = Paths{tree_.root()},
            .random =
                [this] { return coin_ = coin_ * 6364136223846793005U + 1442695040888963407U, coin_ >> 33; },
            .clocks = [this] { return clocks_; },
            .now = [this] { return now_; },
            .wall = [this] { return wall_; },
            .minute_of_day = [this] { return minute_; },
            .hold_memory = [this](bool hold) { held_ = hold; }});
        counters_.more = {{"kcryptd", 100'000}, {"writeback", 100'000}, {"@default", 200'000}};
        use(guard(policy));
    }
    void use(const Policy& policy) {
        tuner_->set_policy(policy);
        trials_->policy_changed();
        reconcile();
    }
    void reconcile() {
        tuner_->reconcile();
        trials_->check();
    }
    // A watchdog tick, 15 s after the one before.
    void tick() {
        now_ += 15'000'000;
        wall_ += 15;
        reconcile();
        trials_->tick();
    }
    // Two ticks: traffic is the difference of two looks.
    void wait_for_traffic() {
        tick();
        tick();
    }
    // To the next timer, if there is one.
    bool step() {
        const auto due = trials_->due();
        if (!due) return false;
        wall_ += static_cast<std::int64_t>((*due - now_) / 1'000'000);
        now_ = *due;
        trials_->on_time();
        return true;
    }
    // Until no trial is measured, at most MOST timers.
    void run(unsigned most = 1000) {
        for (unsigned i = 0; i < most && step(); i++) {
        }
    }
    // The candidate's latency is FACTOR times the baseline's 1000 ns.
    void candidate_costs(double factor) {
        counters_.count = [factor](unsigned slot) {
            return WorkCount{.items = 10'000, .latency = slot == 1 ? 1000 * factor : 1000};
        };
    }
    [[nodiscard]] const VerdictRecord& last() const { return verdicts_->records().back(); }
    [[nodiscard]] std::optional<Progress> progress(const std::string& name) const {
        return trials_->progress_of(name);
    }

    FakeCounters counters_;
    WriteAtOnce at_once_;
    RecordWriter* record_ = &at_once_;
    std::unique_ptr<Trials> trials_;
    std::uint64_t now_ = 1'000'000'000;
    std::uint64_t coin_ = 1;
    unsigned minute_ = 12 * 60;
    Clocks clocks_;
    bool held_ = false;  // memory
};

}  // namespace wq::test
