// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/ledger.h"
#include "evidence/verdicts.h"
#include "plan/plan.h"

namespace wq {

// One side of a comparison: values that a target's files can hold.
struct Arm {
    Scope scope = Scope::cache;
    std::string word;                        // written to the file; for "default", `scope` is its meaning
    std::optional<bool> strict;              // empty if no rule names it
    [[nodiscard]] std::string name() const;  // "smt", "smt strict"
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
    resting,  // no pair for now: it regressed, or its candidate was set aside
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
    std::string said;              // if not `waiting`: the comparison that decided, for people
    unsigned candidates = 1;       // how many the target has
    // The latest record of the comparison in `said`, or nullptr if the history has none. The store owns it.
    const VerdictRecord* verdict = nullptr;

    // Whether ARM is ours and in force outside of slots.
    [[nodiscard]] bool holds(const Arm& arm) const {
        return (kind == Kind::set || kind == Kind::kept) && hold == arm;
    }
};

// A candidate that is set aside on one target.
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

}  // namespace wq
