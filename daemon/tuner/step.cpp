// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace wq {
namespace {

const ScopeWish* wish_of(const Workqueue& target, const Policy& policy) {
    if (target.kind == Kind::default_scope) return &policy.default_scope.wish;
    const WorkqueueRule* rule = policy.rule_for(target.name);
    return rule == nullptr ? nullptr : &rule->wish;
}

const Candidate* candidate_with(const Planned& plan, Scope scope) {
    for (const Candidate& c : plan.candidates)
        if (std::find(c.same.begin(), c.same.end(), scope) != c.same.end()) return &c;
    return nullptr;
}

// How far the largest pod is from one shard, in octaves.
double distance(const Candidate& c, unsigned shard_size) {
    return std::abs(std::log2(static_cast<double>(std::max<std::size_t>(c.max_cores, 1)) / shard_size));
}

// What is tried against the baseline, in this order. The plan goes first among equals.
std::vector<Arm> challengers(const StepInput& in) {
    if (!searches(in.target, in.policy)) return {planned_arm(in.target, in.plan)};
    const Candidate* now = in.plan.now ? candidate_with(in.plan, *in.plan.now) : nullptr;
    const Candidate* planned = in.plan.planned ? candidate_with(in.plan, *in.plan.planned) : nullptr;
    const bool strict_alone = now != nullptr && planned == now && in.plan.finding == Finding::change;
    std::vector<const Candidate*> order;
    for (const Candidate& c : in.plan.candidates)
        if (&c != now || strict_alone) order.push_back(&c);
    std::stable_sort(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) {
        const double da = distance(*a, in.shard_size);
        const double db = distance(*b, in.shard_size);
        return da != db ? da < db : a == planned && b != planned;
    });
    std::vector<Arm> out;
    for (const Candidate* c : order)
        out.push_back(c == planned ? planned_arm(in.target, in.plan) : arm_of(in.plan, c->scope));
    return out;
}

// An inconclusive trial tells of the plan only if it ran its course: one that measured nothing, or was
// stopped in an emergency, is no reason to keep anything.
bool wins(const VerdictRecord& verdict, const StepInput& in) {
    if (verdict.outcome != TrialOutcome::inconclusive) return verdict.outcome == TrialOutcome::improved;
    return in.policy.mode != Mode::tune && in.policy.keep == Keep::unless_regressed &&
           verdict.reason == kMaxPairsReason;
}

}  // namespace

std::string Arm::name() const {
    return fmt::format("{}{}", name_of(scope), strict == true ? " strict" : "");
}

std::optional<Arm> arm_named(std::string_view name) {
    constexpr std::string_view kStrict = " strict";
    const bool strict = name.ends_with(kStrict);
    if (strict) name.remove_suffix(kStrict.size());
    const auto scope = scope_named(name);
    if (!scope) return {};
    return Arm{*scope, std::string(name), strict ? std::optional(true) : std::nullopt};
}

bool searches(const Workqueue& target, const Policy& policy) {
    const ScopeWish* wish = wish_of(target, policy);
    return policy.mode == Mode::tune && wish != nullptr && wish->kind == ScopeWish::Kind::automatic;
}

Arm arm_of(const Planned& plan, Scope scope) {
    return {scope, std::string(name_of(scope)), plan.strict};
}

Arm baseline_arm(const Workqueue& target, const Planned& plan) {
    return {plan.now.value_or(Scope::cache), target.scope.word, plan.strict ? target.strict : std::nullopt};
}

// Where only the strictness is to change, the word stays, "default" included.
Arm planned_arm(const Workqueue& target, const Planned& plan) {
    if (!plan.planned || plan.planned == plan.now) {
        Arm arm = baseline_arm(target, plan);
        arm.strict = plan.strict;
        return arm;
    }
    return arm_of(plan, *plan.planned);
}

// Each challenger meets the incumbent once; who wins is the next one's incumbent. What an old verdict says
// holds until a new trial of the same arms begins: a setting does not flap because a week is over.
Step next_step(const StepInput& in) {
    Step step;
    Arm incumbent = baseline_arm(in.target, in.plan);
    for (const Arm& challenger : challengers(in)) {
        const Arms arms{incumbent, challenger};
        const VerdictRecord* verdict = in.latest(arms);
        if (verdict == nullptr || !is_trusted(*verdict, in.policy.judge.retry_after, in.now)) {
            if (!step.trial) step.trial = arms;
            if (verdict == nullptr) break;
        }
        if (step.verdict == nullptr || step.verdict->time <= verdict->time) step.verdict = verdict;
        if (wins(*verdict, in)) {
            step.hold = incumbent = challenger;
            step.kind = Step::Kind::kept;
        } else if (step.kind == Step::Kind::waiting) {
            step.kind = Step::Kind::reverted;
        }
    }
    return step;
}

}  // namespace wq
