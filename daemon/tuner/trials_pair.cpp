// SPDX-License-Identifier: LGPL-2.1-or-later
// The pairs of the trial that runs, and its end.
#include <fmt/format.h>
#include <syslog.h>

#include <cstdint>
#include <utility>

#include "tuner/trials.h"

namespace wq {
namespace {

constexpr unsigned kMostDropped = 10;     // pairs running, before a trial is given up
constexpr std::uint64_t kMostStuck = 20;  // one item in so many

}  // namespace

std::optional<std::uint64_t> Trials::due() const {
    if (!current_ || (is_recording() && !current_->recorded)) return {};
    return current_->due;
}

void Trials::on_time() {
    if (!due() || edges_.now() < current_->due) return;
    Running& trial = *current_;
    switch (trial.phase) {
        case Phase::recording: {
            const std::string name = trial.name;
            const bool by_hand = trial.by_hand;
            if (const auto begun = begin_recorded(); !begun) did_not_begin(name, by_hand, begun.error());
            return;
        }
        case Phase::washout:
            trial.pair->open(trial.slots[trial.turn], edges_.now());
            trial.phase = Phase::count;
            trial.due = edges_.now() + static_cast<std::uint64_t>((trial.window - trial.washout).count());
            return;
        case Phase::count:
            trial.pair->close(trial.slots[trial.turn], edges_.now(),
                              static_cast<std::uint64_t>((trial.window - trial.washout).count()));
            if (trial.turn++ == 0) return start_window();
            trial.phase = Phase::drain;
            trial.due = edges_.now() + static_cast<std::uint64_t>(trial.washout.count());
            return;
        case Phase::drain:
            return finish_pair();
    }
}

void Trials::cpus_changed() {
    if (current_ && current_->pair) current_->pair->spoil("CPUs came or went");
}

void Trials::start_pair() {
    Running& trial = *current_;
    if (!trial.by_hand && !edges_.tuner.policy().judge.hours.contains(edges_.minute_of_day()))
        return park("these are not the hours for it");
    trial.pair.emplace(trial.meters, edges_.clocks());
    const auto first = static_cast<unsigned>(edges_.random() & 1);
    trial.slots[0] = first;
    trial.slots[1] = 1 - first;
    trial.turn = 0;
    start_window();
}

// Every window begins with a write, so that both arms pay for switching.
void Trials::start_window() {
    Running& trial = *current_;
    if (const std::string why = why_moved(); !why.empty()) return cut_off(why);
    const Arm& arm = trial.slots[trial.turn] == 0 ? trial.arms.baseline : trial.arms.candidate;
    const Outcome outcome = edges_.tuner.switch_to(trial.name, arm);
    if (outcome.kind != Outcome::Kind::done) return switch_failed(outcome);
    trial.phase = Phase::washout;
    trial.due = edges_.now() + static_cast<std::uint64_t>(trial.washout.count());
}

// Masks are changed without any event: they are looked at before a window and before a pair counts.
std::string Trials::why_moved() {
    const std::string now = edges_.tuner.look_at_cpus(current_->name);
    if (now.empty() || now == current_->key.cpus) return "";
    return fmt::format("its CPUs are {} now, and were {}", now, current_->key.cpus);
}

void Trials::switch_failed(const Outcome& outcome) {
    using Kind = Outcome::Kind;
    if (outcome.kind == Kind::gone) return cut_off("the workqueue vanished");
    if (outcome.kind == Kind::foreign)
        return cut_off(fmt::format("an external writer wrote '{}'", outcome.text));
    if (outcome.kind == Kind::unsupported)
        return cut_off(fmt::format("the kernel stored '{}' instead", outcome.text));
    cut_off("not written: " + outcome.text);
}

// Whether there was enough work is asked first, of both windows together; then whether it ran where the arms
// put it; then what went wrong; and the values last.
void Trials::finish_pair() {
    Running& trial = *current_;
    if (const std::string why = why_moved(); !why.empty()) return cut_off(why);
    trial.pair->finish(edges_.clocks());
    const PairMeasurement& pair = *trial.pair;
    trial.lost += pair.lost();
    if (trial.meters.work != nullptr && pair.items() / 2 < trial.settings.min_items) {
        const std::string why = pair.counted() ? "too little traffic" : pair.fault();
        trial.judge->drop(why);
        trial.dropped++;
        totals_.pairs_dropped++;
        return park(why);
    }
    trial.items += pair.items();
    trial.stuck += pair.stuck();
    if (trial.stuck * kMostStuck > trial.items) return finish(trial.judge->end(kStuckReason), true);
    if (!pair.fault().empty()) return drop_pair(pair.fault());
    if (const std::string why = trial.judge->why_dropped(pair.pair()); !why.empty()) return drop_pair(why);
    trial.dropped_running = 0;
    rests_.erase(trial.name);
    totals_.pairs_used++;
    trial.readings.add(pair.pair());
    if (const auto verdict = trial.judge->add(pair.pair())) return finish(*verdict, true);
    start_pair();
}

void Trials::drop_pair(const std::string& why) {
    Running& trial = *current_;
    trial.judge->drop(why);
    trial.dropped++;
    totals_.pairs_dropped++;
    if (++trial.dropped_running < kMostDropped) return start_pair();
    finish(trial.judge->end(fmt::format("{} pairs running were dropped: {}", kMostDropped, why)), true);
}

void Trials::cut_off(const std::string& why) {
    const bool by_hand = current_->by_hand;
    const std::string name = current_->name;
    finish(current_->judge->end(why), false);
    if (!by_hand) rest(name, true);
}

void Trials::end_parked(const std::string& name, const std::string& why) {
    auto node = parked_.extract(name);
    if (node.empty()) return;
    Running& trial = *node.mapped();
    const VerdictRecord record = settle(trial, trial.judge->end(why), false);
    say(record);
    keep(record, std::move(trial.readings));
}

// First of all the target gets what the verdict makes of it. Nothing that takes time comes before that.
void Trials::finish(const TrialVerdict& verdict, bool judged) {
    const RunningPtr trial = std::move(current_);
    traffic_.clear();
    if (judged) rests_.erase(trial->name);
    const VerdictRecord record = settle(*trial, verdict, judged);
    edges_.tuner.end_trial(trial->name);
    let_go();
    say(record);
    keep(record, std::move(trial->readings));
    if (judged && !stays(*trial)) totals_.taken_back++;
}

bool Trials::stays(const Running& trial) const {
    const auto found = edges_.tuner.targets().find(trial.name);
    return found != edges_.tuner.targets().end() && found->second.step.hold == trial.arms.candidate;
}

void Trials::count(const TrialVerdict& verdict, bool judged) {
    if (!judged)
        totals_.cut_off++;
    else if (verdict.outcome == TrialOutcome::regressed)
        totals_.regressed++;
    else if (verdict.outcome == TrialOutcome::improved)
        totals_.improved++;
    else
        totals_.inconclusive++;
}

// What TRIAL came to, as the store knows it from now on.
VerdictRecord Trials::settle(const Running& trial, const TrialVerdict& verdict, bool judged) {
    VerdictRecord record;
    record.key = trial.key;
    record.target = trial.name;
    record.time = edges_.wall();
    record.trial = trial.number;
    record.judged = judged;
    record.outcome = verdict.outcome;
    record.reason = verdict.reason;
    record.standing = verdict.standing;
    record.settings = trial.settings;
    record.dropped = trial.dropped;
    record.lost = trial.lost;
    count(verdict, judged);
    edges_.verdicts.add(record);
    unsaved_ = true;
    return record;
}

// One event per verdict.
void Trials::say(const VerdictRecord& r) {
    const bool notable = r.judged && r.outcome != TrialOutcome::inconclusive;
    edges_.log.write(
        {notable ? LOG_NOTICE : LOG_INFO,
         r.judged ? Event::verdict : Event::trial_cut_off,
         fmt::format("{}: {} against {}: {}{}: {}", r.target, r.key.candidate, r.key.baseline,
                     name_of(r.outcome), r.reason.empty() ? "" : " (" + r.reason + ")", text_of(r.standing)),
         {{"WQ_NAME", r.target},
          {"WQ_ARM_BASELINE", r.key.baseline},
          {"WQ_ARM_CANDIDATE", r.key.candidate},
          {"WQ_VERDICT", std::string(name_of(r.outcome))},
          {"WQ_REASON", r.reason},
          {"WQ_COUNTER", r.standing.counter},
          {"WQ_PAIRS", std::to_string(r.standing.pairs)},
          {"WQ_EFFECT_PERCENT", fmt::format("{:.2f}", r.standing.effect.percent)}}});
}

}  // namespace wq
