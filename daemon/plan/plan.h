// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/kernel_info.h"
#include "model/policy.h"
#include "model/topology.h"
#include "model/workqueue.h"

namespace wq {

// Scopes that make the same pods of a target's CPUs, named by the coarsest of them.
struct Candidate {
    Scope scope = Scope::cache;
    std::vector<Scope> same;    // all of them, finest first, `scope` included
    std::size_t pools = 0;      // pods with CPUs of the target
    std::size_t min_cores = 0;  // cores of the smallest and of the largest pod
    std::size_t max_cores = 0;
};

enum class Action : std::uint8_t { none, write, skip };
std::string_view name_of(Action action);

// Why a plan says what it says, for the machine; `reason` says it to people.
enum class Finding : std::uint8_t {
    untouchable,   // ordered, per-CPU, max_active 1, absurd files, opted out
    unmanaged,     // no rule, or @default without manage
    leave,         // a rule or an administrator says hands off
    pods_unknown,  // the kernel's pods cannot be derived: no new writes, nothing taken back
    unsupported,   // this kernel has no such scope
    in_place,      // the pods are already the planned ones
    change,        // to be written
};

// What is planned for a target.
struct Planned {
    std::optional<Scope> now;      // what its word means once @default is what it is to be
    std::optional<Scope> planned;  // empty where it is skipped
    std::optional<bool> strict;    // what a rule wants affinity_strict to be
    Action action = Action::none;
    Finding finding = Finding::unmanaged;
    std::string reason;
    std::vector<Candidate> candidates;  // coarsest first; empty where pods are unknown or cannot be planned
};

struct PlanLine : Planned {
    Workqueue target;
    std::optional<Origin> rule;
};

// What the planner looks at. It touches nothing and keeps nothing.
struct PlanInput {
    const Topology& topology;
    const KernelInfo& kernel;
    const Policy& policy;
    const std::vector<Workqueue>& targets;
    std::string pods_unknown;  // why the kernel's pods cannot be derived; empty where they can
    unsigned shard_size = 8;   // cores
    std::optional<Scope> default_holds =
        {};  // what @default is to be, where that is known better than by its plan
};

// A line per target, in the order given.
std::vector<PlanLine> make_plan(const PlanInput& input);
// The same line by line, for who does not keep them as they are: TAKE gets the number of the target as well.
void plan_each(const PlanInput& input, const std::function<void(std::size_t, PlanLine)>& take);

// Shard size in force: the kernel's where it has one, else the policy's.
unsigned effective_shard_size(const KernelInfo& kernel, const Policy& policy);

// Why the pods that KERNEL made at boot were neither read nor can be derived from what is seen now; empty
// where they are known. KNOWN: the CPUs that were seen online and not isolated.
std::string why_pods_unknown(const Topology& topology, const CpuSet& known, const KernelInfo& kernel);

}  // namespace wq
