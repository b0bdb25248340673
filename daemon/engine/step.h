// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/ledger.h"
#include "judge/verdicts.h"
#include "plan/plan.h"

namespace wq {

// What a target's files may hold: one side of a comparison.
struct Arm {
    Scope scope = Scope::cache;
    std::string word;                        // "default" stands for what it means
    std::optional<bool> strict;              // empty where no rule names it
    [[nodiscard]] std::string name() const;  // "smt", "smt strict"
    friend bool operator==(const Arm&, const Arm&) = default;
};

// The arm that has this name, by the scope's own word; a strictness that the name does not have is empty.
std::optional<Arm> arm_named(std::string_view name);

struct Arms {
    Arm baseline;  // the reference: what is in force, which is the kernel's baseline or what was kept
    Arm candidate;
    [[nodiscard]] std::string key() const { return baseline.name() + "\n" + candidate.name(); }
    friend bool operator==(const Arms&, const Arms&) = default;
};

// How often a comparison is measured.
enum class Course : std::uint8_t {
    none,     // there is none
    dense,    // a pair in every slot, up to judge.max_pairs
    sparse,   // a pair per judge.holdback
    resting,  // no pair for now: it regressed, or its candidate was set aside
    watched,  // the candidate was kept: sparse pairs against the baseline
};
std::string_view name_of(Course course);

// What the ledger makes of a plan: what the target shall hold, and what is compared next.
struct Step {
    enum class Kind : std::uint8_t {
        waiting,   // nothing is decided yet: baseline
        kept,      // `hold` is what won
        reverted,  // the baseline is
    };
    Kind kind = Kind::waiting;
    std::optional<Arm> hold;       // empty: the baseline
    std::optional<Arms> trial;     // what is compared next; empty: nothing is
    Course course = Course::none;  // of `trial`
    std::optional<Arms> watch;     // what was kept, against the baseline
    std::string said;              // of what is not `waiting`: on what it rests, for people
    unsigned candidates = 1;       // of this reference
    // The latest record of the comparison that `said` tells of, where the history has one. It is the store's.
    const VerdictRecord* verdict = nullptr;
};

struct StepInput {
    const Workqueue& target;  // as it is without us
    const Planned& plan;      // that may change it: finding `change`, or `in_place` in mode tune
    const Policy& policy;
    unsigned shard_size = 8;  // cores
    // The key of a comparison of the target; FROM_POLICY: the reference is what we kept, not the kernel's.
    std::function<LedgerKey(const Arms& arms, bool from_policy)> key;
    std::function<const VerdictRecord*(const Arms& arms)> latest;  // VerdictStore::latest()
    std::function<bool(const std::string& word)> refuses;          // whether the kernel refused it here
    std::int64_t now = 0;                                          // s since 1970
};

// Whether a rule lets mode tune search: one that names a scope does not.
bool searches(const Workqueue& target, const Policy& policy);

// The arms of TARGET, as it is without us: what PLAN asks for, SCOPE by its name, and what there is.
Arm planned_arm(const Workqueue& target, const Planned& plan);
Arm arm_of(const Planned& plan, Scope scope);
Arm baseline_arm(const Workqueue& target, const Planned& plan);

}  // namespace wq
