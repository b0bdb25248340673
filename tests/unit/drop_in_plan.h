// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fake_machine.h"
#include "plan/plan.h"
#include "policy/load_policy.h"

namespace wq::test {

// Loads TEXT as the only policy of a host with FACTS. It must be valid and without warnings.
inline Policy policy_of(const std::string& text, const HostFacts& facts) {
    const TempTree tree{File("drop-in.toml", text)};
    PolicyErrors warnings;
    const auto policy = load_policy(
        {tree.path("drop-in.toml")}, [&] { return facts; }, &warnings);
    EXPECT_TRUE(policy) << policy.error()[0].underlined() << "\n" << text;
    EXPECT_TRUE(warnings.empty()) << text;
    return policy.value_or(Policy{});
}

// What POLICY plans for the target NAME, which has the kernel's scope `cache`, on a machine where each scope
// finer than `cache` makes other pods: "set smt strict", "leave", "unmanaged".
inline std::string planned_by(const Policy& policy, const std::string& name) {
    const Topology topology = machine({.sockets = 2, .cores = 12, .threads = 2});
    const Workqueue moves = default_target(topology, Scope::cache);
    const Workqueue target = name == moves.name ? moves : unbound(topology, Scope::cache, name);
    const PlanLine line = make_plan({topology, kernel_612(), policy, {target, moves}, "", 8}).at(0);
    if (line.finding == Finding::leave) return "leave";
    if (line.finding == Finding::unmanaged) return "unmanaged";
    return std::string(line.finding == Finding::change ? "set " : "none ") +
           std::string(line.planned ? name_of(*line.planned) : "?") +
           (!line.strict   ? ""
            : *line.strict ? " strict"
                           : " not strict");
}

}  // namespace wq::test
