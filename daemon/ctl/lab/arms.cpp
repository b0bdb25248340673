// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "machine/topology.h"
#include "plan/pods.h"

namespace wq::ab {
namespace {

constexpr std::string_view kStrict = ":strict";

Arm plain(Scope scope) {
    return {scope, std::string(name_of(scope)), {}};
}

Result<Arm> parse_arm(std::string_view word) {
    const bool strict = word.ends_with(kStrict);
    const auto name = strict ? word.substr(0, word.size() - kStrict.size()) : word;
    const auto scope = scope_named(name);
    if (!scope) return fail(fmt::format("'{}' is not a scope", word), EINVAL);
    Arm arm = plain(*scope);
    if (strict) arm.strict = true;
    return arm;
}

}  // namespace

Result<std::vector<Arm>> parse_arms(std::string_view text) {
    std::vector<Arm> arms;
    for (;;) {
        const auto comma = text.find(',');
        const auto arm = parse_arm(text.substr(0, comma));
        if (!arm) return tl::unexpected(arm.error());
        if (std::find(arms.begin(), arms.end(), *arm) != arms.end())
            return fail(fmt::format("'{}' is named twice", text.substr(0, comma)), EINVAL);
        arms.push_back(*arm);
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    if (arms.size() < 2) return fail("at least two arms are needed", EINVAL);
    if (std::any_of(arms.begin(), arms.end(), [](const Arm& a) { return a.strict.has_value(); }))
        for (Arm& arm : arms) arm.strict = arm.strict.has_value();
    return arms;
}

Result<std::vector<Arm>> arms_to_sweep(const PlanLine& line) {
    const std::string& name = line.target.name;
    const auto now = line.target.scope.effective;
    if (line.candidates.empty() || !now) return fail(fmt::format("{}: {}; name --arms", name, line.reason));
    std::vector<Arm> arms{plain(*now)};
    for (const Candidate& c : line.candidates)
        if (&c != candidate_with(line, *now)) arms.push_back(plain(c.scope));
    if (arms.size() < 2) return fail(name + ": all scopes make the same pools here; nothing to compare");
    return arms;
}

PlanLine plan_by_cpus(const Topology& topology, const KernelInfo& kernel, Workqueue target) {
    Policy policy;
    policy.rules = {{{"*"}, {}, {}, {}}};
    KernelInfo without_option = kernel;
    without_option.default_on_cmdline = false;
    KnownCpus known;
    known.see(topology);
    const std::vector<Workqueue> targets{std::move(target)};
    const unsigned size = effective_shard_size(kernel, policy);
    return make_plan({topology, without_option, policy, targets,
                      why_pods_unknown(topology, known.cpus(), kernel, size), size})
        .front();
}

std::string why_not(const PlanLine& line, const std::vector<Arm>& arms, const KernelInfo& kernel) {
    if (!line.target.untouchable.empty()) return line.target.untouchable;
    const bool parameter = line.target.kind == Kind::default_scope;
    if (parameter && !kernel.default_writable) return "the module parameter cannot be written";
    for (const Arm& arm : arms) {
        if (!kernel.has(arm.scope)) return fmt::format("this kernel has no {}", name_of(arm.scope));
        if (arm.strict && parameter) return "the module parameter has no strictness";
    }
    return "";
}

}  // namespace wq::ab
