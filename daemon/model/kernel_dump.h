// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "model/kernel_pods.h"
#include "model/scope.h"

namespace wq {

// What kernel/workqueue.c keeps, at about one moment: the kernel goes on while it is read.

struct DumpedPool {
    int id = 0;
    int refs = 0;  // workqueues' uses; of a CPU's own pools always 1
    int nice = 0;
    int idle = 0;                 // of the workers
    int workers = 0;              // of a pool for soft interrupts: one, which is no task
    std::optional<unsigned> cpu;  // of a CPU's own pool; else unbound
    int node = -1;                // -1: no node in particular
    CpuSet cpus;                  // where workers may run, strictness aside
    CpuSet pod_cpus;              // where work is to be run
    bool strict = false;
    bool bh = false;
};

// Work of an unbound workqueue that runs on a NUMA node, and how much may (since 6.9).
struct DumpedNode {
    int node = -1;  // -1: of no node in particular
    int active = 0;
    int max = 0;
};

struct DumpedRescuer {
    std::string name;  // its task's
    int pid = 0;
    CpuSet cpus;  // allowed now
};

// What an unbound workqueue is set to.
struct DumpedAttrs {
    std::string scope;  // a scope's word or "default"; "unknown" where the kernel has one that we do not know
    std::optional<Scope> effective;
    bool strict = false;
    int nice = 0;
    CpuSet cpus;
};

struct DumpedWorkqueue {
    std::string name;  // not unique
    std::string kind;  // "per-cpu", "unbound", "ordered" or "bh"
    std::vector<std::string> flags;
    std::optional<DumpedAttrs> attrs;  // unbound and ordered ones
    std::map<unsigned, int> pools;     // CPU to pool
    std::optional<int> default_pool;   // unbound and ordered ones
    int max_active = 0;
    std::vector<DumpedNode> nodes;
    std::optional<DumpedRescuer> rescuer;
};

struct KernelDump {
    std::optional<Scope> default_scope;
    CpuSet unbound;                   // where unbound work may run
    std::optional<CpuSet> requested;  // before isolated CPUs are left out; since 6.7, like the next
    std::optional<CpuSet> isolated;
    KernelPods scopes;
    std::vector<DumpedPool> pools;  // by id
    std::vector<DumpedWorkqueue> workqueues;
};

}  // namespace wq
