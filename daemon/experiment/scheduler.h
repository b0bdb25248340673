// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/accrue.h"
#include "evidence/verdicts.h"
#include "targets/conditions.h"
#include "targets/inventory.h"
#include "targets/step.h"
#include "targets/target.h"

namespace wq {

// A candidate that is set aside on one target.
struct Rest {
    std::uint64_t until = 0;
    std::string why;
    bool suspect = false;  // the candidate looked harmful
};

// What is known about one target alone; the ledger is about classes. Each part has its own lifetime.
struct Notes {
    // Its work, as of the last look or pair.
    struct {
        double rate = 0;  // completions per s
        std::uint64_t rate_at = 0;
        double expected = 0;          // completions per s over both windows of the last pair
        std::uint64_t write = 1'000;  // us that a write takes
    } load;
    // When it takes part.
    struct {
        std::uint64_t served = 0;
        std::uint64_t next_sparse = 0;  // 0: now
        std::uint64_t next_watch = 0;
        std::uint64_t pause = 0;  // between two pairs of the watch
    } turns;
    // What happened in consecutive pairs.
    struct {
        unsigned starved = 0;     // the candidate's window was cut
        unsigned dropped = 0;     // without those of the watch
        unsigned missed = 0;      // dropped pairs of the watch
        std::uint64_t items = 0;  // sums over about the last eight pairs
        std::uint64_t stuck = 0;  // of these, on pools that are no longer the workqueue's
    } streaks;
    // Why it is skipped. A reload ends that.
    struct Aside {
        std::map<std::string, Rest> rests;  // by Arms::key()
        unsigned failures = 0;              // consecutive slots without a result
        std::uint64_t not_before = 0;
        std::string why;  // of the last one
    } aside;
    LostTime lost;                         // of today's budget
    std::map<std::string, WorkSeen> seen;  // by Arms::key()
};

// Operators' `compare` orders, and the notes about each target. Times are us of CLOCK_MONOTONIC.
class OrderBook {
  public:
    struct Order {
        Arms arms;
        std::uint64_t pairs = 0;
    };
    std::map<std::string, Order> orders;          // by target
    static constexpr unsigned kMostDropped = 10;  // dropped pairs in a row; then the candidate is set aside

    [[nodiscard]] Notes& of(const std::string& name) { return notes_[name]; }
    // Those of a new target if nothing is known.
    [[nodiscard]] const Notes& of(const std::string& name) const;
    [[nodiscard]] ArmRest rest_of(const std::string& name, const Arms& arms, std::uint64_t now) const;
    // A target whose slots give no result is skipped for a while, twice as long each time: switching has a
    // cost.
    void put_off(const std::string& name, const std::string& why, std::uint64_t now);
    // Seconds that a target, or all of them, lost today, which WALL (s since 1970) is part of.
    [[nodiscard]] double lost(const std::string& name, std::int64_t wall) const;
    [[nodiscard]] double lost(std::int64_t wall) const;
    [[nodiscard]] bool is_spent(const std::string& name, std::int64_t wall, const Judging& judge) const {
        return lost(name, wall) >= static_cast<double>(judge.budget.count());
    }
    // Takes the rates of workqueues that were seen at NOW (those not in RATES have none), where no pair
    // counted since LAST: a pair's count is better, because its writes reset the kernel's counts to zero.
    void see(const std::map<std::string, double>& rates, std::uint64_t last, std::uint64_t now);
    void policy_changed();
    void forget_others(const std::map<std::string, Target>& targets);

  private:
    std::map<std::string, Notes> notes_;
};

// Clocks that must not jump within a slot: how far each is ahead of CLOCK_MONOTONIC, in ns.
struct Clocks {
    std::int64_t suspended = 0;  // CLOCK_BOOTTIME
    std::int64_t wall = 0;       // CLOCK_REALTIME
};

// The host's clocks and coin. Tests replace them.
struct HostClock {
    std::function<std::uint64_t()> random;    // getrandom(2): the coin must not be guessed by a load
    std::function<Clocks()> clocks;           // the current values
    std::function<std::uint64_t()> now;       // us of CLOCK_MONOTONIC, exact; that of the event loop may lag
    std::function<std::int64_t()> wall;       // s since 1970
    std::function<unsigned()> minute_of_day;  // local time
    std::function<std::uint64_t()> uptime;    // s since boot
};

// A comparison of one target that gets its next pair, or the reason why it does not.
struct Taker {
    std::string name;
    Arms arms;
    Course course = Course::none;
    bool by_hand = false;          // an operator ordered it
    bool from_policy = false;      // the reference is an arm that we hold
    bool candidate_holds = false;  // the candidate is in force outside of slots: it is watched
    unsigned candidates = 1;
    LedgerKey key;
    std::uint64_t due = 0;
    std::uint64_t served = 0;               // when the target last took part
    std::string waits;                      // why no pair is measured now; "" if it may be
    std::optional<std::int64_t> next_pair;  // s since 1970, if it is known

    // The arm that is in force outside of slots.
    [[nodiscard]] const Arm& incumbent() const { return candidate_holds ? arms.candidate : arms.reference; }
    // Whether it must be alone in its slot. While the watch looks for harm, no other target switches; and the
    // windows of @default also change its followers.
    [[nodiscard]] bool is_alone() const { return name == kDefaultTarget || course == Course::watched; }
};

Taker taker_of(const Target& target, const Arms& arms, Course course, const Keys& keys);

// Which comparisons get the next slot, and why the others do not. Pure. The ledger alone determines which
// arms are compared (targets/step.h), so a restart changes nothing.
//
// A comparison is dense (a pair in every slot), sparse (a pair per judge.recheck), resting or watched.
// @default is compared last. Times are us of CLOCK_MONOTONIC unless the comment says s since 1970.
class Scheduler {
  public:
    struct Facts {
        const std::map<std::string, Target>& targets;
        const Keys& keys;
        const KernelInfo& kernel;
        const Policy& policy;
        const Ledger& ledger;
        const OrderBook& book;
        std::string host = {};       // why no slot begins on this host; orders do not wait for that
        std::string observing = {};  // why nothing is written
        std::string unsaved = {};    // why the ledger cannot be saved
        bool counted = true;         // whether work is counted; if not, nobody knows who is busy
        std::uint64_t now = 0;
        std::int64_t wall = 0;  // s since 1970
    };
    explicit Scheduler(Facts facts) : f_(std::move(facts)) {}

    // All that may get a pair when due and busy. Some have no key yet: most targets are not busy.
    [[nodiscard]] std::vector<Taker> takers() const;
    // The comparison of target NAME that is shown, with the answer when it gets a pair, or why not.
    [[nodiscard]] std::optional<Taker> answer(const std::string& name) const;
    // Of READY, which is not empty, with their keys: either all that may share a slot, or one that must be
    // alone, whichever waited longer. Orders come first.
    [[nodiscard]] std::vector<Taker> choose(std::vector<Taker> ready) const;
    [[nodiscard]] bool is_busy(const std::string& name) const;

    // The arms of an order on TARGET. SCOPE: of the candidate; if empty: what comes next.
    [[nodiscard]] Result<Arms> arms_of_order(const Target& target, const std::string& scope) const;
    // Why no pair of an order can be measured, now or later.
    [[nodiscard]] std::string why_no_order(const Target& target, const Arms& arms) const;

  private:
    void make_key(Taker& taker) const;
    [[nodiscard]] std::vector<Taker> takers_of(const Target& target) const;
    void rest(Taker& taker) const;
    [[nodiscard]] std::string why_not(const Target& target) const;
    [[nodiscard]] bool means_another(const Arms& arms) const;
    [[nodiscard]] bool in_doubt(const Taker& taker) const;
    [[nodiscard]] std::int64_t wall_of(std::uint64_t at) const;

    Facts f_;
};

// The conditions under which a slot may begin on this host.
class HostWatch {
  public:
    // CLOCK must outlive this.
    HostWatch(Paths paths, const HostClock& clock) : paths_(std::move(paths)), clock_(clock) {}

    // A new random delay begins if judge.jitter changed, or the hours begin: hosts of a fleet that start, or
    // whose hours begin, at the same time do not begin to measure at the same time.
    void policy_changed(const Judging& judge);
    // SYSTEM_STATE: of systemd; "" if it cannot be asked.
    void tick(const Judging& judge, const std::string& system_state);
    void look();
    void cpus_changed();
    void pause(bool paused) { now_.paused = paused; }
    // The conditions now, without those of the engine and the ledger.
    [[nodiscard]] Conditions conditions(const Judging& judge) const;

  private:
    void draw_delay(const Judging& judge);

    Paths paths_;
    const HostClock& clock_;
    Conditions now_{.in_hours = false};  // as of the last look or tick
    std::uint64_t battery_at_ = 0;       // when the firmware was last asked
    std::uint64_t not_before_ = 0;
    std::chrono::seconds jitter_{-1};  // from which not_before_ was drawn
    std::uint64_t hotplug_until_ = 0;
};

}  // namespace wq
