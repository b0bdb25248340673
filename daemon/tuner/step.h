// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "tuner/verdicts.h"

namespace wq {

// What a target's files may hold: one side of a trial.
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
    Arm baseline;  // the incumbent, once an earlier trial of mode tune has replaced the baseline
    Arm candidate;
    friend bool operator==(const Arms&, const Arms&) = default;
};

// What past verdicts make of a plan: what the target shall hold, and what is to be tried next.
struct Step {
    enum class Kind : std::uint8_t {
        waiting,   // nothing is known of the plan yet: baseline
        kept,      // `hold` is what won
        reverted,  // the baseline is
    };
    Kind kind = Kind::waiting;
    std::optional<Arm> hold;    // empty: the baseline
    std::optional<Arms> trial;  // empty: nothing is left to try until a verdict grows old
    // The latest that had a part in it; what is not `waiting` has one. It is the store's: where a trial of
    // the same class ends, it is a later one than `kind` was made from, until the next look.
    const VerdictRecord* verdict = nullptr;
};

struct StepInput {
    const Workqueue& target;  // as it is without us
    const Planned& plan;      // that may change it: finding `change`, or `in_place` in mode tune
    const Policy& policy;
    unsigned shard_size = 8;                                       // cores
    std::function<const VerdictRecord*(const Arms& arms)> latest;  // VerdictStore::latest()
    std::int64_t now = 0;                                          // s since 1970
};

// Pure: the same verdicts make the same step, so that it survives restarts.
Step next_step(const StepInput& input);

// Whether a rule lets mode tune search: one that names a scope does not.
bool searches(const Workqueue& target, const Policy& policy);

// The arms of TARGET, as it is without us: what PLAN asks for, SCOPE by its name, and what there is.
Arm planned_arm(const Workqueue& target, const Planned& plan);
Arm arm_of(const Planned& plan, Scope scope);
Arm baseline_arm(const Workqueue& target, const Planned& plan);

}  // namespace wq
