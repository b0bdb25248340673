// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "experiment/experiment.h"
#include "fake_counters.h"
#include "fake_rig.h"
#include "noise.h"
#include "service/loop.h"

namespace wq::test {

// A Rig with experiments. The test moves the clock, sees the coin, and sets the cost of the work for each
// word in a target's file. Both workqueues have traffic; `auto` means smt.
class ExperimentRig : public Rig {
  protected:
    explicit ExperimentRig(KernelInfo kernel = kernel_612()) : Rig(std::move(kernel)) {
        counters_.on_begin = [this](const std::string& target, unsigned slot) {
            word_[target][slot] = word_of(target);
            begun_[target] = now_;
        };
        counters_.count = [this](const std::string& target, unsigned slot) {
            return window(target, word_[target][slot]);
        };
        counters_.completed = [this](const std::string& target) {
            return static_cast<std::uint64_t>(pace_(target, word_of(target)) *
                                              static_cast<double>(now_ - begun_[target]) / 1e6);
        };
        use_traffic({"kcryptd", "writeback"});
        start(tune());
    }

    // The shipped policy without its waits at the start.
    static Policy tune() { return at_once(rule_for_all({})); }
    // The same with smt, which is the plan, as the only candidate.
    static Policy smt_alone() { return at_once(rule_for_all({.candidates = {Scope::smt}})); }
    static Policy at_once(Policy policy) {
        policy.judge.jitter = policy.judge.settle = std::chrono::seconds(0);
        return policy;
    }
    void use_traffic(const std::set<std::string>& names) {
        counters_.items.clear();
        for (const std::string& name : names) counters_.items[name] = 0;
    }
    // Adds two workqueues of one class.
    void add_class() {
        for (const char* name : {"kcryptd-254:0", "kcryptd-254:1"}) add_workqueue(name);
    }
    // Starts the daemon with the files that an earlier daemon left.
    void start(const Policy& policy) {
        experiment_.reset();
        restart();
        experiment_ = std::make_unique<Experiment>(
            ExperimentEdges{.targets = parts_->targets,
                            .engine = parts_->engine,
                            .writer = parts_->slots,
                            .book = book_,
                            .ledger = *ledger_,
                            .counters = counters_,
                            .verdicts = *verdicts_,
                            .record = *record_,
                            .log = log_,
                            .paths = Paths{tree_.root()},
                            .clock = {.random = [this] { return random_.bits(); },
                                      .clocks = [this] { return clocks_; },
                                      .now = [this] { return now_++; },  // no two calls return the same time
                                      .wall = [this] { return wall_; },
                                      .minute_of_day = [this] { return minute_; },
                                      .uptime = [this] { return uptime_ + (now_ - began_) / 1'000'000; }}});
        use(policy);
        next_tick_ = now_;
    }
    // smt is the only candidate, and kcryptd the only busy target.
    void start_alone() {
        start(smt_alone());
        use_traffic({"kcryptd"});
    }
    // These two replace Rig's functions and notify the experiment too.
    void use(const Policy& policy) {
        parts_->engine.set_policy(policy);
        experiment_->policy_changed();
        reconcile();
    }
    void reconcile() { take(Cause::look); }
    void tick() {
        take(Cause::tick);
        next_tick_ = now_ + tick_;
    }
    void take(Cause cause) { react(cause, true, system_state_, parts_->engine, *experiment_); }
    void move_to(std::uint64_t when) {
        if (when <= now_) return;
        const double seconds = static_cast<double>(when - now_) / 1e6;
        now_ = when;
        wall_ = 1'700'000'000 + static_cast<std::int64_t>((now_ - began_) / 1'000'000);
        for (auto& [name, n] : counters_.items)
            n += static_cast<std::uint64_t>(pace_(name, word_of(name)) * seconds);
    }
    // Advances to the next timer or tick.
    void step() {
        const auto due = experiment_->due();
        move_to(due ? std::min(*due, next_tick_) : next_tick_);
        if (due && now_ >= *due) take(Cause::slot);
        if (now_ >= next_tick_) tick();
    }
    void run(double seconds) {
        const std::uint64_t end = now_ + static_cast<std::uint64_t>(seconds * 1e6);
        while (now_ < end) step();
    }
    // Runs until DONE returns true, but at most for SECONDS. Returns the result of DONE.
    template <class Done>
    bool run_until(Done done, double seconds = 1800) {
        const std::uint64_t end = now_ + static_cast<std::uint64_t>(seconds * 1e6);
        while (!done() && now_ < end) step();
        return done();
    }
    bool run_to_slot() {
        return run_until([this] { return experiment_->is_measuring(); }, 60);
    }
    // Runs to the end of the current slot, or of the next one if none runs.
    void run_slot() {
        (void)run_to_slot();
        (void)run_until([this] { return !experiment_->is_measuring(); }, 120);
    }
    bool run_to_verdict(double seconds = 1800) {
        const std::size_t before = verdicts_->records().size();
        return run_until([&] { return verdicts_->records().size() > before; }, seconds);
    }
    // The cost of a target is FACTOR * 1000 ns while its file holds WORD.
    void costs(const std::string& word, double factor) {
        cost_ = [=](const std::string&, const std::string& now) { return now == word ? factor : 1.0; };
    }
    [[nodiscard]] std::string word_of(const std::string& target) const {
        return target == kDefaultTarget ? default_scope() : first_word(scope(target));
    }
    static std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }
    WorkCount window(const std::string& target, const std::string& word) {
        const double latency = 1000 * cost_(target, word) * std::exp(noise_ * random_.normal());
        const double pace = pace_(target, word);
        return {.items = static_cast<std::uint64_t>(pace * 1.5),
                .latency = latency,
                .stuck = stuck_,
                .timed = 2000,
                .throughput = pace * std::exp(noise_ * random_.normal()),
                .cpu = 5000 * std::exp(noise_ * random_.normal())};
    }
    [[nodiscard]] const VerdictRecord& last() const { return verdicts_->records().back(); }
    [[nodiscard]] std::optional<ComparisonView> view(const std::string& name) const {
        return experiment_->view_of(name);
    }
    [[nodiscard]] const LedgerEntry* entry(const std::string& kind, const std::string& reference,
                                           const std::string& candidate) const {
        for (const auto& [text, one] : experiment_->ledger().entries())
            if (one.key.kind == kind && one.key.reference == reference && one.key.candidate == candidate)
                return &one;
        return nullptr;
    }

    FakeCounters counters_;
    std::uint64_t began_ = 1'000'000'000;
    std::uint64_t now_ = began_;
    std::uint64_t next_tick_ = now_;
    std::uint64_t tick_ = 15'000'000;  // us; longer in tests that simulate days
    Random random_{1};
    unsigned minute_ = 12 * 60;
    std::uint64_t uptime_ = 3600;
    std::string system_state_ = "running";
    Clocks clocks_;
    double noise_ = 0.01;  // log-sd of a window
    std::uint64_t stuck_ = 0;
    // By target and the word in its file: cost of an item (1 is 1000 ns), and completions per second.
    std::function<double(const std::string&, const std::string&)> cost_ = [](const auto&, const auto&) {
        return 1.0;
    };
    std::function<double(const std::string&, const std::string&)> pace_ = [](const auto&, const auto&) {
        return 10'000.0;
    };
    std::map<std::string, std::map<unsigned, std::string>> word_;  // in place when the window began
    std::map<std::string, std::uint64_t> begun_;
    std::unique_ptr<Experiment> experiment_;
};

}  // namespace wq::test
