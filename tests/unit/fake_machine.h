// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/kernel_info.h"
#include "model/policy.h"
#include "model/topology.h"
#include "model/workqueue.h"
#include "temp_tree.h"

namespace wq::test {

// A machine as the planner sees it: SOCKETS x CORES x THREADS CPUs, an LLC and (unless ONE_NODE) a NUMA node
// per socket, numbered as Linux numbers x86: first threads of all cores, then second threads.
struct Shape {
    unsigned sockets = 1;
    unsigned cores = 4;
    unsigned threads = 1;
    bool one_node = false;
};
Topology machine(Shape shape);
// The same with these CPUs (a list) gone offline.
Topology without(Topology topology, const std::string& offline);

KernelInfo kernel_612();                  // no cache_shard
KernelInfo kernel_72(unsigned size = 8);  // cache_shard, and it is the default

// An unbound workqueue of all of TOPOLOGY's CPUs that says `default (EFFECTIVE)`.
Workqueue unbound(const Topology& topology, Scope effective, const std::string& name = "kcryptd");
// @default, saying SCOPE.
Workqueue default_target(const Topology& topology, Scope scope);

// A policy of one rule for every workqueue; the rule is at "rules.toml:1".
Policy rule_for_all(const ScopeWish& wish = {}, std::optional<bool> strict = std::nullopt);
ScopeWish leave();
ScopeWish fixed(Scope scope);

// One workqueue's folder, as the kernel shows an unbound one. An inode of its own each time.
struct WorkqueueFiles {
    std::string scope = "default (cache)";
    std::string cpumask = "ff";
    std::string max_active = "512";
    std::string strict = "0";
    mode_t max_active_mode = 0644;
};
Entry workqueue(const std::string& name, const WorkqueueFiles& files = {});
// All that the daemon reads beside the CPUs: workqueues below an unbound mask, the module's parameters
// (cache_shard_size where SHARD_SIZE is not ""), an empty command line.
std::vector<Entry> kernel_tree(std::vector<Entry> workqueues, const std::string& default_scope = "cache",
                               const std::string& shard_size = "", const std::string& mask = "ff");
// Path of a workqueue's file, relative to the tree's root.
std::string wq_path(const std::string& name, const std::string& file = "affinity_scope");
inline const std::string kDefaultPath = "sys/module/workqueue/parameters/default_affinity_scope";

}  // namespace wq::test
