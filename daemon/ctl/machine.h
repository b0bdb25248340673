// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"
#include "plan/plan.h"
#include "policy/load_policy.h"

namespace wq::ctl {

class Shown;

// All input of a plan, read once, without a daemon and without writes.
struct Machine {
    Topology topology;
    KernelInfo kernel;
    Policy policy;
    std::vector<Workqueue> targets;
    std::string pods_unknown;
    NamedOnly named_only;  // targets that are left alone on this host unless a rule names them
    unsigned shard_size = 8;
    bool hypothetical = false;  // not the kernel of the source
    // What the files of targets held before wq-tuned wrote to them, by name, where it did.
    std::map<std::string, std::string> baselines;
    std::set<std::string> reverted;  // targets that an operator's order holds at their baseline
    std::string default_held;        // the order or the external writer that holds @default; "" if none does
    // The status of a daemon that runs with this kernel and policy; null if there is none.
    nlohmann::json status;

    // Like the daemon's, the plan starts from the baselines. The targets in it are as they are now.
    [[nodiscard]] std::vector<PlanLine> plan() const;
};

// Reads what OPTIONS name. A source without workqueues gets the single target "*". Prints warnings and
// errors of the policy; the caller prints the returned error.
Result<Machine> read_machine(const Options& options);

// The topology that OPTIONS name. Throws a CLI::ValidationError for a description that hwloc does not take: a
// wrong argument.
Result<Topology> topology_of(const Options& options);

// The tree with the source's /sys, if there is one: the machine, a --root, or an fsroot.
std::optional<Paths> tree_of(const Options& options);
// The kernel of the tree with the source's /sys (the machine, --root, an fsroot); empty for other sources.
// Includes the kernel's pods if they can be read and the options do not ask for another kernel. If the
// options ask for another shard size, the pods of `cache_shard` are omitted.
KernelInfo kernel_of(const Options& options);
// The facts about the host that OPTIONS name: from its tree, or only from its topology if it has no tree.
// With --kernel-scopes the release is not known. The first function reads the topology; the second uses
// TOPOLOGY. The result refers to OPTIONS and TOPOLOGY.
FactsSource facts_of(const Options& options);
FactsSource facts_of(const Options& options, const Topology& topology);
// Cores per shard: from the option, else from the kernel, else from the policy.
unsigned shard_size_for(const Options& options, const KernelInfo& kernel, const Policy& policy);

// A note for each pattern of POLICY that matches no workqueue of the tree that OPTIONS name, if there is one.
std::vector<std::string> notes_about(const Options& options, const Policy& policy);

// Why the daemon on MACHINE, which OPTIONS name, begins no comparison now, as it says; if none runs, why one
// would not. "" if it does, or if the source can have no daemon.
std::string why_held_back(const Options& options, const Machine& machine);
// The same as a sentence.
std::string held_back_remark(const Options& options, const Machine& machine);

// Prints all errors of a policy, one line each.
void print_errors(const PolicyErrors& errors);
// Prints an error as one line, "wq-tunectl: ...", and returns kFailure.
int complain(const std::string& text);

nlohmann::json kernel_json(const KernelInfo& kernel);

// The output of `wq-tunectl topology` without its warnings. KERNEL: for its pods, shown where they differ
// from the model.
nlohmann::ordered_json topology_json(const Topology& topology, const KernelInfo& kernel, unsigned shard_size);
Shown topology_shown(const Topology& topology, const KernelInfo& kernel, unsigned shard_size);

// Why the kernel's own pods were not read, as a sentence; "" if they were read or were not to be read.
std::string why_not_its_own(const KernelInfo& kernel);

}  // namespace wq::ctl
