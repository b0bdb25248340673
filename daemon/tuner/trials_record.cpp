// SPDX-License-Identifier: LGPL-2.1-or-later
// What of trials is on disk: that one begins, before its first pair; what it came to, after its end.
#include <fmt/format.h>
#include <syslog.h>

#include <cerrno>
#include <utility>

#include "tuner/trials.h"

namespace wq {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kSlow = 2 * kSecond;  // a record that takes longer is said to
// A trial whose beginning is not recorded by then is given up at the next tick, so that no counters stay
// attached for it.
constexpr std::uint64_t kTooSlow = 10 * kSecond;
constexpr std::size_t kMostSaid = 100;

}  // namespace

// Asks for the store to be written. Newer text takes the place of what waits.
void Trials::save() {
    const std::uint64_t number = ++saves_;
    if (!saving_since_) saving_since_ = edges_.now();
    unsaved_ = false;
    const std::string& path = edges_.verdicts.path();
    edges_.record.put(
        path, [path, text = edges_.verdicts.text()] { return VerdictStore::write(path, text); },
        [this, number](const Status& done) { saved(number, done); });
}

void Trials::saved(std::uint64_t number, const Status& done) {
    if (number == saves_) saving_since_.reset();
    record_error_ = done ? "" : done.error().text;
    if (record_error_ != record_said_ && !record_error_.empty())
        edges_.log.write({LOG_WARNING, Event::none,
                          record_error_ + "; what is learned may be forgotten, and no trial begins"});
    record_said_ = record_error_;
    if (!is_recording() || current_->recorded || number < current_->save) return;
    current_->recorded = done;
    current_->due = edges_.now();
}

// What counts is that the next trial's beginning can be written; "" where nothing speaks against it.
std::string Trials::why_no_record() const {
    if (!record_error_.empty()) return "the record of trials cannot be written: " + record_error_;
    if (saving_since_ && edges_.now() - *saving_since_ > kSlow)
        return fmt::format("the record of trials cannot be written: the disk has not answered for {} s",
                           (edges_.now() - *saving_since_) / kSecond);
    return "";
}

// Once the beginning is recorded, or cannot be.
Status Trials::begin_recorded() {
    Running& trial = *current_;
    if (!*trial.recorded) return give_up({trial.recorded->error().code, why_no_record()});
    if (auto ready = edges_.tuner.begin_trial(trial.name, trial.arms); !ready) return give_up(ready.error());
    if (edges_.hold_memory) edges_.hold_memory(true);
    edges_.log.write({LOG_INFO,
                      Event::trial_begun,
                      fmt::format("{}: trial of {} against {}", trial.name, trial.arms.candidate.name(),
                                  trial.arms.baseline.name()),
                      {{"WQ_NAME", trial.name},
                       {"WQ_ARM_BASELINE", trial.arms.baseline.name()},
                       {"WQ_ARM_CANDIDATE", trial.arms.candidate.name()}}});
    trial.since = edges_.wall();
    totals_.begun++;
    start_pair();
    return {};
}

// Nothing was written for it, so that it pays no alpha.
Status Trials::give_up(const Error& why) {
    edges_.verdicts.did_not_begin(current_->key);
    unsaved_ = true;
    current_.reset();
    traffic_.clear();
    let_go();
    return tl::unexpected(why);
}

// A target whose trial cannot begin is left alone for a while. What passes is not worth a line in the
// journal, but to who ordered the trial.
void Trials::did_not_begin(const std::string& name, bool by_hand, const Error& why) {
    rest(name, true);
    edges_.tuner.explain_waiting("waiting: " + why.text);
    const bool news =
        !passes(why.code) && not_begun_.size() < kMostSaid && not_begun_.insert(why.text).second;
    if (news || by_hand) edges_.log.write({LOG_NOTICE, Event::none, "no trial could begin: " + why.text});
}

// While the beginning of a trial is recorded, its ground may go, or the disk may not answer.
void Trials::check_recording() {
    const std::string name = current_->name;
    const bool by_hand = current_->by_hand;
    if (const std::string why = why_cut_off(*current_); !why.empty())
        return did_not_begin(name, by_hand, give_up({0, why}).error());
    if (!current_->recorded && edges_.now() - current_->asked >= kTooSlow)
        did_not_begin(name, by_hand, give_up({EAGAIN, why_no_record()}).error());
}

// What was read goes beside the verdicts, which are on their way first.
void Trials::keep(const VerdictRecord& record, TrialReadings readings) {
    if (!cancelling_) save();
    if (readings.pairs.empty()) return;
    edges_.record.put(
        fmt::format("{}: {} of {}", edges_.paths.readings(), record.target, record.time),
        [paths = edges_.paths, record, readings = std::move(readings)] {
            return keep_readings(paths, record, readings);
        },
        [this](const Status& done) {
            if (!done)
                edges_.log.write(
                    {LOG_WARNING, Event::none, done.error().in("a trial's pairs are not kept").text});
        });
}

}  // namespace wq
