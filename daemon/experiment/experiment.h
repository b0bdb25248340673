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
#include "base/result.h"
#include "bpf/work_counters.h"
#include "evidence/comparison.h"
#include "evidence/verdicts.h"
#include "experiment/accrue.h"
#include "experiment/ledger_file.h"
#include "experiment/slot.h"
#include "experiment/target_pair.h"
#include "state/record_writer.h"
#include "targets/candidates.h"
#include "targets/conditions.h"
#include "targets/engine.h"
#include "targets/step.h"

namespace wq {

// The state of a target's comparison, for status, explain and metrics.
struct ComparisonView {
    Arms arms;
    Course course = Course::none;
    Judgement judgement = Judgement::undecided;  // the decision, which stays until the opposite is decided
    Decision decision;                           // from the evidence as of the last pair
    Effect effect;                               // of the counter that decided, or is nearest to a decision
    std::optional<std::int64_t> next_pair;       // s since 1970, if it is known
    std::string waits;                           // why no pair is measured now; "" while one is
    double lost_seconds = 0;                     // of today's budget
    bool measuring = false;                      // takes part in the running slot
    bool by_order = false;                       // `wq-tunectl compare` asked for it
};

// Totals of all experiments since the start of the daemon.
struct ExperimentTotals {
    std::uint64_t slots = 0;
    std::uint64_t pairs = 0;
    std::uint64_t pairs_dropped = 0;
    std::uint64_t windows_lost = 0;
    std::uint64_t improved = 0;    // verdicts
    std::uint64_t regressed = 0;   //
    std::uint64_t undecided = 0;   // comparisons that max_pairs pairs did not decide
    std::uint64_t taken_back = 0;  // by the watch
    std::uint64_t rests = 0;       // candidates that were set aside for a time
    std::uint64_t cut_off = 0;     // targets that left a slot before its end
};

// Clocks that must not jump within a slot: how far each is ahead of CLOCK_MONOTONIC, in ns.
struct Clocks {
    std::int64_t suspended = 0;  // CLOCK_BOOTTIME
    std::int64_t wall = 0;       // CLOCK_REALTIME
};

// Whether error CODE is transient, so that the next try may succeed.
inline bool passes(int code) {
    return kind_of_error(code) == Outcome::Kind::transient;
}

// Runs experiments on all busy targets in slots (experiment/slot.h). In a slot, each target that takes part
// has a pair of windows, whose order its own coin decides. The results are in a ledger. The ledger alone
// determines which arms are compared, and what is held in between (targets/candidates.h), so a restart
// changes nothing.
//
// A comparison is dense (a pair in every slot), sparse (a pair per judge.recheck), resting or watched. A
// watched target is alone in its slot, so that no other target switches while the watch looks for harm.
// @default is alone in its slot because its windows also change its followers; it is compared last.
//
// Times are us of CLOCK_MONOTONIC unless the comment says s since 1970.
class Experiment {
  public:
    struct Edges {
        Engine& engine;
        WorkCounters& counters;
        VerdictStore& verdicts;  // the history of verdicts; it decides nothing
        RecordWriter& record;
        Log& log;
        Paths paths;
        std::function<std::uint64_t()> random;    // getrandom(2): the coin must not be guessed by a load
        std::function<Clocks()> clocks;           // the current values
        std::function<std::uint64_t()> now;       // exact; the clock of the event loop may lag
        std::function<std::int64_t()> wall;       // s since 1970
        std::function<unsigned()> minute_of_day;  // local time
        std::function<std::uint64_t()> uptime;    // s since boot
        std::function<std::string()> system_state = {};  // systemd's: "running"; "" if it cannot be asked
        // Called with true when a slot begins, and with false when no more slots follow.
        std::function<void(bool hold)> hold_memory = {};
    };

    // Reads the ledger, and counts the lost windows of a slot that a crash cut off.
    explicit Experiment(Edges edges);
    ~Experiment();

    // For Engine::Edges.
    [[nodiscard]] Step step(const StepInput& input) const;
    [[nodiscard]] const Waiting& waiting() const { return waiting_; }

    // Call after a policy was put into use: candidates that were set aside may be tried again, and a new
    // random delay begins if judge.jitter changed.
    void policy_changed();
    // Called at watchdog ticks.
    void tick();
    // When to call on_time(); empty while nothing is measured and nothing waits for traffic.
    [[nodiscard]] std::optional<std::uint64_t> due() const;
    void on_time();
    // Call when CPUs came or went, or may have: the pairs of the running slot do not count.
    void cpus_changed();
    // Call after each Engine::reconcile(): targets that cannot be compared any more leave the slot.
    void check();
    // `wq-tunectl compare`: compares SCOPE (if empty: what comes next) on target NAME at once, also outside
    // judge.hours. Error: why not.
    Status order(const std::string& name, const std::string& scope);
    // Ends the running slot, and saves the ledger. A window that this cuts off counts against its arm.
    void cancel_all(const std::string& why);
    // While paused no slot begins, except for orders. The running slot comes to its end.
    void pause(bool paused) { paused_ = paused; }

    [[nodiscard]] bool is_measuring() const { return slot_ != nullptr; }
    [[nodiscard]] std::optional<ComparisonView> view_of(const std::string& target) const;
    [[nodiscard]] const ExperimentTotals& totals() const { return totals_; }
    // Seconds that all targets lost to experiments today (UTC).
    [[nodiscard]] double lost_today() const;
    [[nodiscard]] const Ledger& ledger() const { return ledger_.ledger(); }
    // Why no slot begins, one reason for all targets: "settling after boot (4 min left)", "outside
    // judge.hours", "paused by `wq-tunectl pause`"; "" if a slot may begin.
    [[nodiscard]] std::string why_no_slot() const;

  private:
    // A comparison that may get its next pair.
    struct Taker {
        std::string name;
        Arms arms;
        Course course = Course::none;
        bool by_hand = false;
        bool from_policy = false;      // the reference is an arm that we hold
        bool candidate_holds = false;  // the candidate is in force outside of slots: it is watched
        unsigned candidates = 1;
        std::uint64_t due = 0;
        std::uint64_t served = 0;  // when the target last took part
    };
    struct Member {
        Taker taker;
        ino_t inode = 0;
        std::string before;  // the word of the target's baseline
        LedgerKey key;
        VerdictKey record_key;
        bool candidate_first = false;
        std::optional<TargetPair> pair;
        std::optional<unsigned> in_place;  // the window whose arm was last written
        double rate = 0;                   // completions per s in the first window, when it was looked at
        bool left = false;
        [[nodiscard]] bool runs_candidate(unsigned window) const { return (window == 0) == candidate_first; }
        [[nodiscard]] const Arm& arm(unsigned window) const {
            return runs_candidate(window) ? taker.arms.candidate : taker.arms.reference;
        }
        [[nodiscard]] Side side(unsigned window) const {
            return runs_candidate(window) ? Side::candidate : Side::reference;
        }
        // The arm that is in force outside of slots.
        [[nodiscard]] const Arm& incumbent() const {
            return taker.candidate_holds ? taker.arms.candidate : taker.arms.reference;
        }
    };
    struct Slot {
        std::vector<Member> members;
        SlotClock clock;
        Coins coins;
        CpuSet online;
        Clocks clocks;
        CpuTimes cpu_times;
        std::string spoilt;  // why no pair of it counts; "" if they count
    };
    struct Rest {
        std::uint64_t until = 0;
        std::string why;
        bool suspect = false;  // the candidate looked harmful
    };
    // What is known about one target, in addition to the ledger, which is about classes.
    struct Notes {
        double rate = 0;  // completions per s
        std::uint64_t rate_at = 0;
        double expected = 0;          // completions per s over both windows of the last pair
        std::uint64_t write = 1'000;  // us that a write takes
        LostTime lost;
        std::uint64_t next_sparse = 0;  // 0: now
        std::uint64_t next_watch = 0;
        std::uint64_t pause = 0;  // between two pairs of the watch
        std::uint64_t served = 0;
        std::map<std::string, Rest> rests;  // by arms
        unsigned starved = 0;               // consecutive pairs in which the candidate's window was cut
        unsigned dropped = 0;               // consecutive dropped pairs, without those of the watch
        unsigned missed = 0;                // consecutive dropped pairs of the watch
        std::uint64_t items = 0;
        std::uint64_t stuck = 0;
        unsigned failures = 0;  // consecutive slots without a result
        std::uint64_t not_before = 0;
        std::string why;  // of the last one
    };
    struct Attached {
        std::string name;
        ino_t inode = 0;
        friend bool operator==(const Attached&, const Attached&) = default;
    };
    struct Order {
        Arms arms;
        std::uint64_t pairs = 0;
    };

    static constexpr unsigned kMostDropped = 10;  // dropped pairs in a row; then the candidate is set aside
    static constexpr std::size_t kMostReadings = 64;

    // experiment.cpp: which targets take part, and when.
    void recover();
    void measure_by(const std::string& lacks);
    void no_counters(const Error& why);
    void find_before_upgrade();
    void draw_delay();
    void refresh_facts();
    [[nodiscard]] std::string why_not(const Target& target) const;
    [[nodiscard]] ArmRest rest_of(const std::string& name, const Arms& arms) const;
    void look_at_swap();
    [[nodiscard]] bool is_spent(const std::string& name) const;
    [[nodiscard]] bool means_another(const Arms& arms) const;
    [[nodiscard]] std::vector<Taker> takers() const;
    [[nodiscard]] std::optional<std::uint64_t> next_due(const std::vector<Taker>& takers) const;
    [[nodiscard]] std::string why_no_order(const Target& target, const Arms& arms) const;
    [[nodiscard]] bool in_doubt(const Target& target, const Arms& arms) const;
    void look();
    Result<bool> look_at_traffic();
    [[nodiscard]] std::string why_unjudged() const;
    [[nodiscard]] bool is_busy(const std::string& name) const;
    [[nodiscard]] std::vector<Taker> choose(std::vector<Taker> ready) const;
    void explain(const std::string& why);
    void put_off(const std::string& name, const std::string& why);
    void could_not_begin(const Member& member, const Error& why);
    void idle();

    // experiment_slot.cpp: the running slot.
    void begin_slot(std::vector<Taker> takers);
    [[nodiscard]] std::vector<Member> able_of(const std::vector<Taker>& takers);
    Status attach(const std::vector<Member>& members);
    [[nodiscard]] SlotTimes times_of(const std::vector<Taker>& takers, std::uint64_t window) const;
    [[nodiscard]] Member member_of(const Taker& taker) const;
    [[nodiscard]] Member member_of(const std::string& name, const Order& order) const;
    void sample(Member& member, double seconds);
    void say_begun(const Member& member);
    void say(int priority, Event event, const std::string& text, const std::string& name, const Arms& arms,
             const std::optional<std::string>& why = {});
    void act();
    void put(unsigned window);
    void put_failed(Member& member, const Outcome& outcome);
    void look_into(unsigned window);
    void check_slot();
    void check_orders();
    void cut(Member& member, unsigned window);
    void leave(Member& member, const std::string& why, bool counts);
    void finish_slot();
    void end_slot(const std::vector<std::string>& still_in_slot);
    [[nodiscard]] std::string why_spoilt() const;
    [[nodiscard]] std::string why_moved(const Member& member);
    // Why a target leaves the slot ("": it stays), and whether that counts against the arm that runs.
    struct Leaving {
        std::string why = {};
        bool ours = false;
    };
    [[nodiscard]] Leaving why_leave(const Member& member) const;
    [[nodiscard]] unsigned index_of(const std::string& name) const;

    // experiment_pair.cpp: the result of a pair.
    void take_pair(Member& member, const PairResult& result, const std::vector<double>& others);
    void drop_pair(Member& member, const std::string& why);
    void miss(const Member& member, const std::string& why);
    bool is_stuck(Member& member, const PairResult& result);
    void take(Member& member, const PairEvidence& evidence, double seconds);
    void be_cautious(Member& member, const LedgerEntry& before, const PairEvidence& evidence);
    void pace(Member& member, const LedgerEntry& entry);
    void rest(const std::string& name, const Arms& arms, std::uint64_t us, const std::string& why,
              bool suspect = false);
    VerdictRecord turned(const Member& member, const LedgerEntry& entry, const Accrual& accrual);
    VerdictRecord record_of(const Member& member, const Decision& decision, const Effect& effect,
                            unsigned trial) const;
    VerdictRecord record_so_far(const Member& member) const;
    void keep(VerdictRecord record, const std::string& key);
    void write_verdicts();
    void write(const VerdictRecord& record, const std::string& key);
    void say(const VerdictRecord& record);
    void count_orders(const Member& member, const std::optional<VerdictRecord>& verdict);
    void give_up(const Member& member, const std::string& why);
    [[nodiscard]] LedgerEntry entry_of(const Member& member) const;
    [[nodiscard]] AccrualRule rule_for(const Member& member) const;

    Edges edges_;
    LedgerFile ledger_;
    std::map<std::string, std::string> before_upgrade_;  // arm that was kept under an older kernel, by class
    std::unique_ptr<Slot> slot_;
    std::map<std::string, Notes> notes_;
    std::map<std::string, Order> orders_;                 // by target
    std::map<std::string, ComparisonReadings> readings_;  // by comparison, since its last verdict
    std::set<std::string> begun_;                         // "TARGET\nCOMPARISON" whose begin was logged
    std::vector<Attached> attached_;                      // by index
    ExperimentTotals totals_;
    Waiting waiting_;
    std::optional<std::uint64_t> look_at_;
    std::map<std::string, std::uint64_t> traffic_;  // completions at the last look
    std::uint64_t traffic_at_ = 0;
    std::vector<std::pair<VerdictRecord, std::string>> to_write_;  // with the keys of their comparisons
    bool turned_ = false;                                          // a verdict or a rest in the ending slot
    bool paused_ = false;
    bool held_ = false;      // hold_memory(true) was called
    bool in_hours_ = false;  // at the last tick
    std::uint64_t not_before_ = 0;
    std::chrono::seconds jitter_{-1};  // from which not_before_ was drawn
    std::uint64_t hotplug_until_ = 0;
    std::string no_counters_;  // why BPF counts nothing here; tried again after a reload
    // As of the last look.
    std::string system_state_;
    bool on_battery_ = false;
    bool memory_is_short_ = false;
    std::uint64_t facts_at_ = 0;
    std::uint64_t asked_system_at_ = 0;
    std::set<std::string> said_;  // why slots could not begin: each reason is logged once
};

}  // namespace wq
