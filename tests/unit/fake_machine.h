// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/workqueue.h"
#include "owned/owned.h"
#include "policy/policy.h"
#include "targets/orders.h"
#include "targets/slot_writer.h"
#include "temp_tree.h"

namespace wq::test {

// All that acts on targets, as in service/parts.h.
struct TargetParts {
    TargetParts(Targets::Edges edges, const KernelInfo& kernel) : targets(std::move(edges), kernel) {}
    Targets targets;
    Engine engine{targets};
    Orders orders{engine};
    SlotWriter slots{engine};
};

// A machine as the planner sees it: SOCKETS x CORES x THREADS CPUs, one LLC and (unless ONE_NODE) one NUMA
// node per socket. CPU numbers as on x86: the first threads of all cores, then the second threads.
struct Shape {
    unsigned sockets = 1;
    unsigned cores = 4;
    unsigned threads = 1;
    bool one_node = false;
};
Topology machine(Shape shape);
// The same machine with the CPUs of the cpulist OFFLINE offline.
Topology without(Topology topology, const std::string& offline);

KernelInfo kernel_612();                  // no cache_shard
KernelInfo kernel_72(unsigned size = 8);  // cache_shard, and it is the default

// An unbound workqueue on all CPUs of TOPOLOGY whose file holds `default (EFFECTIVE)`.
Workqueue unbound(const Topology& topology, Scope effective, const std::string& name = "kcryptd");
// @default, whose file holds SCOPE.
Workqueue default_target(const Topology& topology, Scope scope);

// A policy with one rule for all workqueues, at "rules.toml:1".
ScopeWish planned();  // scope = "plan"
// One rule for all workqueues. The default sets the plan first.
Policy rule_for_all(const ScopeWish& wish = planned(), std::optional<bool> strict = std::nullopt);
ScopeWish leave();
ScopeWish fixed(Scope scope);

// The entries that the next process reads of a store.
OwnedEntries saved_entries(const TempTree& tree, const std::string& file = "run/wq-tuned/owned.json",
                           OwnedStore::Of of = OwnedStore::Of::daemon);

// The sysfs directory of an unbound workqueue. Each one has its own inode.
struct WorkqueueFiles {
    std::string scope = "default (cache)";
    std::string cpumask = "ff";
    std::string max_active = "512";
    std::string strict = "0";
    mode_t max_active_mode = 0644;
};
Entry workqueue(const std::string& name, const WorkqueueFiles& files = {});
// All files that the daemon reads except those of the CPUs: the workqueues with the unbound mask, the module
// parameters (cache_shard_size unless SHARD_SIZE is ""), an empty command line.
std::vector<Entry> kernel_tree(std::vector<Entry> workqueues, const std::string& default_scope = "cache",
                               const std::string& shard_size = "", const std::string& mask = "ff");
// Path of a file of a workqueue, relative to the root of the tree.
std::string wq_path(const std::string& name, const std::string& file = "affinity_scope");
inline const std::string kDefaultPath = "sys/module/workqueue/parameters/default_affinity_scope";

}  // namespace wq::test
