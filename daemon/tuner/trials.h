// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "judge/trial.h"
#include "tuner/readings.h"
#include "tuner/record_writer.h"
#include "tuner/tuner.h"
#include "tuner/verdicts.h"
#include "tuner/window_pair.h"

namespace wq {

// Whether error CODE says nothing about the next try.
inline bool passes(int code) {
    return kind_of_error(code) == Outcome::Kind::transient;
}

// How a trial stands, for status.
struct Progress {
    Arms arms;
    unsigned pair = 1;  // the one being measured, dropped ones not counted
    unsigned max_pairs = 0;
    unsigned dropped = 0;
    std::uint64_t lost = 0;
    Standing standing;
    std::int64_t since = 0;            // s since 1970, when it began, or was taken up again
    std::chrono::milliseconds most{};  // that its pairs take, if none is dropped and it never waits
    std::string phase;                 // "recording", "washout", "counting", "draining", "waiting"
    std::string reason;                // why it waits; what the counters lack
};

// What came of all trials since the start of the daemon.
struct TrialTotals {
    std::uint64_t begun = 0;
    std::uint64_t cut_off = 0;  // without a verdict
    std::uint64_t regressed = 0;
    std::uint64_t improved = 0;
    std::uint64_t inconclusive = 0;
    std::uint64_t taken_back = 0;  // verdicts after which the candidate did not stay
    std::uint64_t pairs_used = 0;
    std::uint64_t pairs_dropped = 0;
};

// Runs trials: one at a time on this host. Times are us of CLOCK_MONOTONIC.
//
// A pair is   write, washout, count | write, washout, count | drain   and takes two windows and a washout. In
// the drain work that was queued at the end of the second window comes to its end, as that of the first had
// time for in the second's washout.
//
// Before the first pair the store of verdicts is to hold, on disk, that a trial of these arms has begun: each
// has less alpha than the one before, also where the daemon is killed in it. Nothing waits for the disk but
// the trial that wants to begin; where the store cannot be written, none begins. What a trial came to is
// written once its candidate is taken back.
class Trials {
  public:
    struct Edges {
        Tuner& tuner;
        WorkCounters& counters;
        VerdictStore& verdicts;
        RecordWriter& record;
        Log& log;
        Paths paths;                              // of the machine's counters, and of the readings
        std::function<std::uint64_t()> random;    // getrandom(2): the coin must not be guessed by a load
        std::function<Clocks()> clocks;           // as they stand
        std::function<std::uint64_t()> now;       // exact, where an event loop's clock may lag
        std::function<std::int64_t()> wall;       // s since 1970
        std::function<unsigned()> minute_of_day;  // local time
        // A candidate is about to be put in place; there is none any more.
        std::function<void(bool hold)> hold_memory = {};
    };

    explicit Trials(Edges edges);
    ~Trials();

    // A policy was taken into use: what was refused is tried again, and a new random delay begins if the
    // policy has another.
    void policy_changed();
    // Called at watchdog ticks: looks for traffic where a target waits, and begins or resumes a trial.
    void tick();
    // When on_time() wants to be called; empty while nothing is measured.
    [[nodiscard]] std::optional<std::uint64_t> due() const;
    void on_time();
    // CPUs came or went, or may have: the pair being measured is of two machines, even where they are all
    // back by the next look.
    void cpus_changed();
    // After each Tuner::reconcile(): ends a trial whose ground is gone.
    void check();
    // Begins a trial of SCOPE (the plan's if empty) at once, whatever the hour. Error: why not. It may still
    // come to nothing while its beginning is recorded; that is logged.
    Status order(const std::string& name, const std::string& scope);
    // Ends all trials without a verdict, and puts the target of the one that runs back.
    void cancel_all(const std::string& why);

    [[nodiscard]] std::optional<Progress> progress_of(const std::string& name) const;
    // The target that is on trial now; nullptr where none is.
    [[nodiscard]] const std::string* running() const { return current_ ? &current_->name : nullptr; }
    [[nodiscard]] std::size_t parked() const { return parked_.size(); }  // trials that were begun, and wait
    [[nodiscard]] const TrialTotals& totals() const { return totals_; }

  private:
    enum class Phase { recording, washout, count, drain };
    struct Running {
        std::string name;
        ino_t inode = 0;
        std::string before;  // the word in the target's file before us
        Arms arms;
        VerdictKey key;
        unsigned number = 1;  // which trial of these arms
        bool by_hand = false;
        CpuSet online;
        Meters meters;
        JudgeSettings settings;
        std::chrono::microseconds window{};
        std::chrono::microseconds washout{};
        std::int64_t since = 0;  // s since 1970
        std::optional<Trial> judge;
        TrialReadings readings;
        // While its beginning is recorded.
        std::uint64_t asked = 0;         // when
        std::uint64_t save = 0;          // by which save()
        std::optional<Status> recorded;  // what came of it
        // The pair being measured.
        std::optional<PairMeasurement> pair;
        Phase phase = Phase::recording;
        unsigned slots[2] = {0, 1};  // the order that the coin chose
        unsigned turn = 0;           // 0 and 1: which window of the pair
        std::uint64_t due = 0;
        // So far.
        unsigned dropped = 0;
        unsigned dropped_running = 0;
        std::uint64_t items = 0;
        std::uint64_t stuck = 0;
        std::uint64_t lost = 0;
        std::string waits;   // why it is parked
        std::string limits;  // what the counters lack
    };
    using RunningPtr = std::unique_ptr<Running>;

    [[nodiscard]] bool wants(const Target& target) const;
    [[nodiscard]] bool means_another(const Arms& arms) const;
    [[nodiscard]] std::string why_not_now() const;
    Result<std::map<std::string, bool>> busy();
    void begin_one();
    Status begin(const std::string& name, const Arms& arms, bool by_hand);
    Status begin_recorded();
    Status give_up(const Error& why);
    void did_not_begin(const std::string& name, bool by_hand, const Error& why);
    void check_recording();
    [[nodiscard]] bool is_recording() const { return current_ && current_->phase == Phase::recording; }
    void save();
    void saved(std::uint64_t number, const Status& done);
    [[nodiscard]] std::string why_no_record() const;
    [[nodiscard]] RunningPtr make_running(const Target& target, const Arms& arms, bool by_hand) const;
    Status attach(Running& trial);
    Status resume(RunningPtr trial);
    void start_pair();
    void start_window();
    void switch_failed(const Outcome& outcome);
    void finish_pair();
    void drop_pair(const std::string& why);
    void park(const std::string& why);
    void finish(const TrialVerdict& verdict, bool judged);
    void cut_off(const std::string& why);
    void end_parked(const std::string& name, const std::string& why);
    VerdictRecord settle(const Running& trial, const TrialVerdict& verdict, bool judged);
    void keep(const VerdictRecord& record, TrialReadings readings);
    void let_go();
    [[nodiscard]] std::string why_moved();
    void count(const TrialVerdict& verdict, bool judged);
    [[nodiscard]] bool stays(const Running& trial) const;
    void rest(const std::string& name, bool at_once);
    void draw_delay();
    [[nodiscard]] std::vector<JudgedCounter> counters_here() const;
    void no_counters(const Error& why);
    void say(const VerdictRecord& record);
    [[nodiscard]] std::string why_cut_off(const Running& trial) const;
    [[nodiscard]] Progress progress(const Running& trial) const;

    Edges edges_;
    RunningPtr current_;
    bool cancelling_ = false;
    // The store of verdicts on disk.
    std::uint64_t saves_ = 0;                    // asked for
    std::optional<std::uint64_t> saving_since_;  // the first that has not ended
    std::string record_error_;                   // of the last that has; "" if it went well
    std::string record_said_;                    // of that, in the journal
    bool unsaved_ = false;                       // the store knows more than was asked to be written
    TrialTotals totals_;
    std::map<std::string, RunningPtr> parked_;     // trials that wait, by target
    std::map<std::string, std::uint64_t> served_;  // when a target's trial last began
    struct Rest {
        unsigned times = 0;  // running that its trials came to nothing
        std::uint64_t until = 0;
    };
    std::map<std::string, Rest> rests_;                     // by target; longer each time
    std::map<std::string, WorkCounters::Traffic> traffic_;  // at the last look
    std::uint64_t traffic_at_ = 0;
    std::uint64_t not_before_ = 0;
    std::chrono::seconds jitter_{-1};  // that not_before_ was drawn from
    bool in_hours_ = false;            // at the last tick
    std::string no_counters_;          // why BPF counts nothing here; asked again after a reload
    std::set<std::string> not_begun_;  // why trials could not begin: each is said once
};

}  // namespace wq
