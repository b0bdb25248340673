// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

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

struct StepInput {
    const Workqueue& target;  // with the values of its baseline
    const Planned& plan;      // with finding `change`, or `in_place` if the rule says `auto`
    const Policy& policy;
    unsigned shard_size = 8;  // cores
    // The key of a comparison of the target. FROM_POLICY: the reference is an arm that we kept, not the
    // kernel's.
    std::function<LedgerKey(const Arms& arms, bool from_policy)> key;
    std::function<const VerdictRecord*(const LedgerKey& key)> latest;  // VerdictStore::latest()
    std::function<bool(const std::string& word)> refuses;              // whether the kernel refused it here
    std::int64_t now = 0;                                              // s since 1970
};

// Whether the target's rule says `auto`.
bool searches(const Workqueue& target, const Policy& policy);

// Arms of TARGET, which has the values of its baseline: the planned one, that of SCOPE, and the baseline.
Arm planned_arm(const Workqueue& target, const Planned& plan);
Arm arm_of(const Planned& plan, Scope scope);
Arm baseline_arm(const Workqueue& target, const Planned& plan);

}  // namespace wq
