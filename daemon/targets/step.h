// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/accrue.h"
#include "evidence/ledger.h"
#include "evidence/verdicts.h"
#include "plan/plan.h"

namespace wq {

// One side of a comparison: values that a target's files can hold.
struct Arm {
    Scope scope = Scope::cache;
    bool is_default = false;                 // the file has the word `default`, which means `scope`
    std::optional<bool> strict;              // empty if no rule names it
    [[nodiscard]] std::string name() const;  // "smt", "smt strict"
    [[nodiscard]] std::string word() const;  // written to the file
    friend bool operator==(const Arm&, const Arm&) = default;
};

// The arm with this name; its word is the scope's name. If the name has no strictness, that is empty.
std::optional<Arm> arm_named(std::string_view name);

struct Arms {
    Arm reference;  // the baseline, or an arm that we kept
    Arm candidate;
    [[nodiscard]] std::string key() const { return reference.name() + "\n" + candidate.name(); }
    friend bool operator==(const Arms&, const Arms&) = default;
};

// How often a comparison is measured.
enum class Course : std::uint8_t {
    none,     // there is no comparison
    dense,    // a pair in every slot, up to judge.max_pairs
    sparse,   // a pair per judge.recheck
    resting,  // no pair for now: it regressed, or its candidate rests for another reason
    watched,  // the candidate was kept: sparse pairs against the baseline
};
std::string_view name_of(Course course);

// The result of plan and ledger: what the target should hold, and what is compared next.
struct Step {
    enum class Kind : std::uint8_t {
        waiting,   // nothing is decided yet: baseline
        set,       // `hold` is the arm that the rule sets first
        kept,      // `hold` is the arm that won
        reverted,  // the baseline, or `hold` if it is set
    };
    Kind kind = Kind::waiting;
    std::optional<Arm> hold;       // empty: the baseline
    std::optional<Arms> next;      // what is compared next; empty: nothing is
    Course course = Course::none;  // of `next`
    std::optional<Arms> watch;     // the arm that was kept, against the baseline
    unsigned candidates = 1;       // how many the target has
    std::string said;              // if not `waiting`: the comparison that decided, for people
    // The latest record of the comparison in `said`, or nullptr if the history has none. The store owns it.
    const VerdictRecord* verdict = nullptr;

    // Whether ARM is ours and in force outside of slots.
    [[nodiscard]] bool holds(const Arm& arm) const {
        return (kind == Kind::set || kind == Kind::kept) && hold == arm;
    }
};

// A candidate that rests on one target.
struct Rest {
    std::uint64_t until = 0;  // us of CLOCK_MONOTONIC
    std::string why;
    bool suspect = false;  // the candidate looked harmful
};

// What a step follows from. An empty function: nothing is known of that.
struct StepInput {
    const Workqueue& target;  // with the values of its baseline
    const Planned& plan;      // with finding `change`, or `in_place` if the rule says `auto`
    const Policy& policy;
    unsigned shard_size = 8;  // cores
    // The key of a comparison. FROM_POLICY: the reference is an arm that we kept, not the kernel's.
    std::function<LedgerKey(const Arms& arms, bool from_policy)> key = {};
    std::function<const LedgerEntry*(const LedgerKey& key)> entry = {};     // Ledger::find()
    std::function<const VerdictRecord*(const LedgerKey& key)> latest = {};  // VerdictStore::latest()
    std::function<const Rest*(const Arms& arms)> rest = {};     // why a comparison rests on the target
    std::function<bool(const std::string& word)> refuses = {};  // whether the kernel refused it here
    std::string before_upgrade = {};  // the arm that was kept for this class under an older kernel
    bool spent = false;               // the target's judge.budget for today is used up
    std::int64_t now = 0;             // s since 1970
};

// Whether the target's rule says `auto`.
bool searches(const Workqueue& target, const Policy& policy);

// Arms of TARGET, which has the values of its baseline: the planned one, that of SCOPE, and the baseline.
Arm planned_arm(const Workqueue& target, const Planned& plan);
Arm arm_of(const Planned& plan, Scope scope);
Arm baseline_arm(const Workqueue& target, const Planned& plan);

// Which arms the target is compared with and in which order, what it holds, and what is compared next. Pure:
// the same ledger gives the same step, also after a restart.
//
// If the rule says `auto`, the candidates are the plan and every scope that is finer than the reference, or
// those that the rule lists; of the others a coarser scope only if it is the plan. They are compared with the
// reference one after the other, the pool size nearest to one shard first. An arm that improved becomes the
// reference. If the rule says `plan` or names a scope, this arm is set first, and is the only candidate.
Step next_step(const StepInput& input);

// All arms that the target would be compared with if the ledger were empty, in order.
std::vector<Arm> candidates_of(const StepInput& input);

// How often the comparison of ENTRY (nullptr: no pair yet) is measured, at NOW (s since 1970).
Course course_of(const LedgerEntry* entry, const Judging& judging, std::int64_t now);

// "smt against cache: improved, latency 8.1% better (7.2 to 9), 23 pairs".
std::string text_of(const LedgerEntry& entry);

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
        std::map<std::string, unsigned> starved;  // the candidate's window was cut; by Arms::key()
        unsigned dropped = 0;                     // without those of the watch
        unsigned missed = 0;                      // dropped pairs of the watch
        std::uint64_t items = 0;                  // sums over about the last eight pairs
        std::uint64_t stuck = 0;                  // of these, on pools that are no longer the workqueue's
    } streaks;
    // Why it is skipped. A reload ends that.
    struct Aside {
        std::map<std::string, Rest> rests;  // by Arms::key()
        unsigned failures = 0;              // consecutive slots without a result
    } aside;
    std::set<std::string> said;            // what was logged once, after LedgerKey::text()
    LostTime lost;                         // of today's budget
    std::map<std::string, WorkSeen> seen;  // by Arms::key()
};

// What the experiments say about the targets that wait for a verdict.
struct Waiting {
    std::string unjudged = {};            // why no comparison can be measured here; "" if they can
    std::set<std::string> compared = {};  // the targets whose dense comparisons are measured now
    friend bool operator==(const Waiting&, const Waiting&) = default;
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
    std::string no_rates;  // why the last look at the traffic failed; "" if it did not
    std::map<std::string, std::string> before_upgrade;  // arm that was kept under an older kernel, by class
    static constexpr unsigned kMostDropped = 10;        // dropped pairs in a row; then the candidate rests

    [[nodiscard]] Notes& of(const std::string& name) { return notes_[name]; }
    // Those of a new target if nothing is known.
    [[nodiscard]] const Notes& of(const std::string& name) const;
    // Why ARMS rest on target NAME; nullptr if they do not.
    [[nodiscard]] const Rest* rest_of(const std::string& name, const Arms& arms) const;
    // A comparison whose slots give no result rests for a while, twice as long each time: switching has a
    // cost.
    void put_off(const std::string& name, const Arms& arms, const std::string& why, std::uint64_t now);
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
    // Ends rests that are over at NOW, and forgets all targets but NAMES and those that lost time today: a
    // device that is opened again has no new budget. WALL: as above.
    template <class Names>
    void tidy(const Names& names, std::uint64_t now, std::int64_t wall) {
        std::erase_if(notes_, [&](const auto& item) {
            return !names.contains(item.first) && lost(item.first, wall) == 0;
        });
        std::erase_if(orders, [&](const auto& item) { return !names.contains(item.first); });
        for (auto& [name, notes] : notes_)
            std::erase_if(notes.aside.rests, [now](const auto& rest) { return rest.second.until <= now; });
    }

  private:
    std::map<std::string, Notes> notes_;
};

}  // namespace wq
