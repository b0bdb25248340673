// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "targets/conditions.h"
#include "targets/gate.h"

namespace wq {

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
    std::string waits;                      // why no pair is measured now; "" if it may be
    std::optional<std::int64_t> next_pair;  // s since 1970, if it is known

    // The arm that is in force outside of slots.
    [[nodiscard]] const Arm& incumbent() const { return candidate_holds ? arms.candidate : arms.reference; }
    // Whether it must be alone in its slot. While the watch looks for harm, no other target switches; and the
    // windows of @default also change its followers.
    [[nodiscard]] bool is_alone() const { return name == kDefaultTarget || course == Course::watched; }
};

// Without its key, which takes long to make.
Taker taker_of(const Target& target, const Arms& arms, Course course);

// Which comparisons get the next slot, and why the others do not. Pure. The ledger alone determines which
// arms are compared (targets/step.h), so a restart changes nothing.
//
// A comparison is dense (a pair in every slot), sparse (a pair per judge.recheck), resting or watched.
// @default is compared last. Times are us of CLOCK_MONOTONIC unless the comment says s since 1970.
class Scheduler {
  public:
    struct Facts {
        const Targets& targets;
        const Ledger& ledger;
        const OrderBook& book;
        std::string host = {};     // why no slot begins on this host; orders do not wait for that
        std::string unsaved = {};  // why the ledger cannot be saved
        bool counted = true;       // whether work is counted; if not, nobody knows who is busy
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

  private:
    void make_key(Taker& taker) const;
    [[nodiscard]] std::vector<Taker> takers_of(const Target& target) const;
    void rest(Taker& taker) const;
    [[nodiscard]] std::string why_waits(const Target& target, const Taker& taker) const;
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
    void look(const Judging& judge);
    void cpus_changed() { hotplug_until_ = clock_.now() + 5 * kSecond; }
    // The conditions now, without those of the targets and the ledger.
    [[nodiscard]] Conditions conditions(const Judging& judge) const;

    // As of the last look. The caller sets `paused` and `system_state`.
    Conditions seen{.in_hours = false};

  private:
    Paths paths_;
    const HostClock& clock_;
    std::uint64_t not_before_ = 0;
    std::chrono::seconds jitter_{-1};  // from which not_before_ was drawn
    std::uint64_t hotplug_until_ = 0;
};

}  // namespace wq
