// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "evidence/accrue.h"
#include "evidence/verdicts.h"
#include "policy/policy.h"
#include "targets/step.h"

namespace wq {

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

// What the experiments say about the targets that wait for a verdict.
struct Waiting {
    std::string why = "waiting for a comparison";  // why no pair is measured
    std::string unjudged = {};                     // why no comparison can be measured here; "" if they can
    std::set<std::string> compared = {};           // the targets whose dense comparisons are measured now
};

// What the experiments know beside the ledger; the engine reads it. Operators' `compare` orders, and the
// notes about each target. Times are us of CLOCK_MONOTONIC.
class OrderBook {
  public:
    struct Order {
        Arms arms;
        std::uint64_t pairs = 0;
    };
    std::map<std::string, Order> orders;  // by target
    Waiting waiting;
    std::map<std::string, std::string> before_upgrade;  // arm that was kept under an older kernel, by class
    static constexpr unsigned kMostDropped = 10;  // dropped pairs in a row; then the candidate is set aside

    [[nodiscard]] Notes& of(const std::string& name) { return notes_[name]; }
    // Those of a new target if nothing is known.
    [[nodiscard]] const Notes& of(const std::string& name) const;
    // Why ARMS rest on target NAME; nullptr if they do not.
    [[nodiscard]] const Rest* rest_of(const std::string& name, const Arms& arms) const;
    // A target whose slots give no result is skipped for a while, twice as long each time: switching has a
    // cost.
    void put_off(const std::string& name, const std::string& why, std::uint64_t now);
    // Seconds that a target, or all of them, lost today, which WALL (s since 1970) is part of.
    [[nodiscard]] double lost(const std::string& name, std::int64_t wall) const;
    [[nodiscard]] double lost(std::int64_t wall) const;
    [[nodiscard]] bool is_spent(const std::string& name, std::int64_t wall, const Judging& judge) const {
        return lost(name, wall) >= static_cast<double>(judge.budget.count());
    }
    // Takes the rates of workqueues that were seen at NOW, where no pair counted since LAST: a pair's count
    // is better, because its writes reset the kernel's counts to zero.
    void see(const std::map<std::string, double>& rates, std::uint64_t last, std::uint64_t now);
    void policy_changed();
    // Ends rests that are over at NOW, and forgets all targets but NAMES.
    template <class Names>
    void tidy(const Names& names, std::uint64_t now) {
        std::erase_if(notes_, [&](const auto& item) { return !names.contains(item.first); });
        std::erase_if(orders, [&](const auto& item) { return !names.contains(item.first); });
        for (auto& [name, notes] : notes_)
            std::erase_if(notes.aside.rests, [now](const auto& rest) { return rest.second.until <= now; });
    }

  private:
    std::map<std::string, Notes> notes_;
};

}  // namespace wq
