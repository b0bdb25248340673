// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "plan/plan.h"

namespace wq::ctl {

// The scope in a target's files: "default (cache)", "smt, strict"; "" if it has none.
std::string scope_text(const Workqueue& target);

// The targets in the daemon's STATUS by name; empty if STATUS is null. The pointers are valid while STATUS
// exists.
std::map<std::string, const nlohmann::json*> targets_of(const nlohmann::json& status);
// The string KEY of such a target; "-" if it has none.
std::string word_of(const nlohmann::json& target, const char* key);

// NAMES as HTML: the first few, with the others folded.
std::string names_html(const std::vector<std::string>& names);

// The report section with the plan: one row per group of targets that differ only in their names. STATUS is
// the daemon's, with states and baselines; null if no daemon was asked.
std::string plan_html(const std::vector<PlanLine>& plan, const nlohmann::json& status);

// Input for the drawing of a machine.
struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;  // its own pods are listed beside the drawing
    unsigned shard_size = 8;   // cores
    const Isolation& isolation;
    CoreKinds kinds = {};
};

// With more CPUs than this, the drawing is folded: the reader must open it.
inline constexpr std::size_t kMostUnfolded = 64;

// The report section with the drawing of a machine: packages, LLCs, shards, cores, threads. Every core of
// the topology is one element with the attribute data-core, whose value is its lowest CPU. Packages that
// share an LLC are in one box. The cores of a hybrid are drawn and named by their kinds.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
