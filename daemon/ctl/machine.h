// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "kernel/paths.h"
#include "model/kernel_info.h"
#include "model/topology.h"
#include "plan/plan.h"
#include "policy/load_policy.h"

namespace wq::ctl {

// All that a plan is made of, read once without a daemon and without writing anything.
struct Machine {
    Topology topology;
    KernelInfo kernel;
    Policy policy;
    std::vector<Workqueue> targets;
    std::string pods_unknown;
    unsigned shard_size = 8;
    bool hypothetical = false;  // another kernel than the one the source runs

    [[nodiscard]] std::vector<PlanLine> plan() const;
};

// Reads what OPTIONS name. A source without workqueues has the one target "*". Prints errors as they are to
// be shown.
Result<Machine> read_machine(const Options& options);

// The tree that has the source's /sys, if any: the machine, a --root, or an fsroot.
std::optional<Paths> tree_of(const Options& options);
// The kernel of the tree that has the source's /sys (the machine, --root, an fsroot); of other sources,
// nothing is known. With its pods, where they can be read and no other kernel is asked for; but for those of
// `cache_shard`, where another size is.
KernelInfo kernel_of(const Options& options);
// What is known of the host that OPTIONS name: of another tree what that tree has, of a source without a tree
// its topology alone, and of --kernel-scopes no release. Reads the topology; the one that takes TOPOLOGY does
// not. For as long as OPTIONS and TOPOLOGY live.
FactsSource facts_of(const Options& options);
FactsSource facts_of(const Options& options, const Topology& topology);
// Cores per shard: the option's, else the kernel's own, else the policy's.
unsigned shard_size_for(const Options& options, const KernelInfo& kernel, const Policy& policy);

// Prints every mistake of a policy, a line each.
void print_errors(const PolicyErrors& errors);
// Prints an error as one line, "wq-tunectl: ...", and returns kFailure.
int complain(const std::string& text);

// A plan line as in the contract of `plan --json`.
nlohmann::json plan_json(const PlanLine& line);
nlohmann::json kernel_json(const KernelInfo& kernel);

}  // namespace wq::ctl
