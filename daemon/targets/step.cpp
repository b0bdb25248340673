// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/step.h"

#include <fmt/format.h>

namespace wq {
std::string_view name_of(Course course) {
    switch (course) {
        case Course::none:
            break;
        case Course::dense:
            return "dense";
        case Course::sparse:
            return "sparse";
        case Course::resting:
            return "resting";
        case Course::watched:
            return "watched";
    }
    return "none";
}

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
    const ScopeWish* wish = wish_for(target, policy);
    return wish != nullptr && wish->kind == ScopeWish::Kind::automatic;
}

Arm arm_of(const Planned& plan, Scope scope) {
    return {scope, std::string(name_of(scope)), plan.strict};
}

Arm baseline_arm(const Workqueue& target, const Planned& plan) {
    return {plan.now.value_or(Scope::cache), target.scope.word, plan.strict ? target.strict : std::nullopt};
}

// If only the strictness is to change, the word stays, also if it is "default".
Arm planned_arm(const Workqueue& target, const Planned& plan) {
    if (!plan.planned || plan.planned == plan.now) {
        Arm arm = baseline_arm(target, plan);
        arm.strict = plan.strict;
        return arm;
    }
    return arm_of(plan, *plan.planned);
}

}  // namespace wq
