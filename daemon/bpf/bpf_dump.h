// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"

namespace wq {

// The state of kernel/workqueue.c at about one moment. The kernel keeps running while we read it.

struct DumpedPool {
    int id = 0;
    int refs = 0;  // number of workqueues that use it; always 1 for a per-CPU pool
    int nice = 0;
    int idle = 0;                 // idle workers
    int workers = 0;              // a pool for soft interrupts (BH) has one, which is not a task
    std::optional<unsigned> cpu;  // only of a per-CPU pool; empty for an unbound pool
    int node = -1;                // -1: no specific node
    CpuSet cpus;                  // where workers may run, ignoring `strict`
    CpuSet pod_cpus;              // where work should run
    bool strict = false;
    bool bh = false;
};

struct DumpedRescuer {
    std::string name;  // name of its task
    int pid = 0;
    CpuSet cpus;  // allowed now
};

// Attributes of an unbound workqueue.
struct DumpedAttrs {
    std::string scope;  // a scope's word or "default"; "unknown" if we do not know the kernel's scope
    std::optional<Scope> effective;
    bool strict = false;
    int nice = 0;
    CpuSet cpus;
};

struct DumpedWorkqueue {
    std::string name;  // not unique
    std::string kind;  // "per-cpu", "unbound", "ordered" or "bh"
    std::vector<std::string> flags;
    std::optional<DumpedAttrs> attrs;  // only unbound and ordered workqueues
    std::map<unsigned, int> pools;     // CPU -> pool
    std::optional<int> default_pool;   // only unbound and ordered workqueues
    int max_active = 0;
    std::optional<DumpedRescuer> rescuer;
};

struct KernelDump {
    std::optional<Scope> default_scope;
    CpuSet unbound;                   // CPUs where unbound work may run
    std::optional<CpuSet> requested;  // `unbound` plus isolated CPUs; this and the next: since 6.7
    std::optional<CpuSet> isolated;
    KernelPods scopes;
    std::vector<DumpedPool> pools;  // ordered by id
    std::vector<DumpedWorkqueue> workqueues;
};

// Reads all worker pools, workqueues and pods of the running kernel, and unloads everything. Needs BTF,
// CAP_BPF, CAP_PERFMON and, for the addresses of variables, CAP_SYSLOG with kernel.kptr_restrict below 2. The
// error says which is missing, or is EAGAIN if the list of workqueues changed during each of three tries.
// Up to 16384 CPUs.
Result<KernelDump> read_kernel_dump();

// Reads only the pods, which the kernel made at boot (kernel/workqueue.c, wq_pod_types). Needs the same.
// Temporary memory: 1 MiB and CPUs^2 * 6/8 bytes.
Result<KernelPods> read_kernel_pods();

// Sets the pods of KERNEL, or the reason why they are not known. Uses the file of `wq-tuned --pods`, else
// read_kernel_pods(). With a root in PATHS there are no pods. Contradictory pods are rejected.
void read_pods(const Paths& paths, KernelInfo& kernel);

}  // namespace wq
