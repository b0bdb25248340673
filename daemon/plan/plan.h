// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/workqueue.h"
#include "policy/policy.h"

namespace wq {

// Targets that are left unless a rule names them.
struct NamedOnly {
    std::string host = {};            // a realtime kernel, isolated CPUs: all targets; "" if neither
    std::set<std::string> swap = {};  // swap_devices(): the targets that serve them

    // Why TARGET is left; "" if it is not.
    [[nodiscard]] std::string why(const Policy& policy, const Workqueue& target) const;
};

// Whether a rule names TARGET. The pattern "*" matches every name and does not count, nor
// does a rule with `evidence`.
bool is_named(const Policy& policy, const Workqueue& target);

// Scopes that make the same pods of a target's CPUs, represented by the coarsest one.
struct Candidate {
    Scope scope = Scope::cache;
    std::vector<Scope> same;    // all of them, finest first, including `scope`
    std::size_t pools = 0;      // pods that contain CPUs of the target
    std::size_t min_cores = 0;  // cores of the smallest pod
    std::size_t max_cores = 0;
};

// What follows from a plan: nothing, as its pods are in place; a comparison with what is in place; a write at
// once, compared afterwards; or nothing, because the target is left.
enum class Action : std::uint8_t { none, compare, set, skip };
std::string_view name_of(Action action);

// Why a target is planned as it is, for programs; `reason` is for people.
enum class Finding : std::uint8_t {
    untouchable,   // ordered, per-CPU, max_active 1, invalid files, opted out
    unmanaged,     // no rule, or @default without `manage`
    leave,         // a rule or an administrator says to leave it, or no rule names it where one must
    followers,     // @default: a workqueue that follows it must be left
    pods_unknown,  // the kernel's pods cannot be derived: no new writes, and nothing is reverted
    unsupported,   // this kernel does not have the scope
    in_place,      // the current pods are the planned ones
    change,        // other pods are planned
};

// The plan for one target.
struct Planned {
    std::optional<Scope> now;      // the scope that its word means once @default has its planned value
    std::optional<Scope> planned;  // empty if the target is skipped
    std::optional<bool> strict;    // affinity_strict as a rule requires it
    Action action = Action::skip;  // follows from `finding` and the rule
    Finding finding = Finding::unmanaged;
    std::string reason;
    std::vector<Candidate> candidates;  // coarsest first; empty if pods are unknown or nothing is planned
};

struct PlanLine : Planned {
    Workqueue target;
    std::optional<Origin> rule;
};

// The candidate of PLAN whose pods SCOPE makes; nullptr if there is none.
const Candidate* candidate_with(const Planned& plan, Scope scope);

// Input of the planner, which has no side effects.
struct PlanInput {
    const Topology& topology;
    const KernelInfo& kernel;
    const Policy& policy;
    const std::vector<Workqueue>& targets;
    std::string pods_unknown;                // why the kernel's pods cannot be derived; "" if they can
    unsigned shard_size = kKernelShardSize;  // cores
    NamedOnly named_only = {};
    std::set<std::string> reverted = {};  // targets that an operator's order holds at their baseline
    // @default was moved: a follower that udev has not processed yet does not count until udev answers.
    bool default_moved = false;
    // The scope to which @default, planned as LINE, will move its followers; empty if it stays. Called once,
    // after TAKE got LINE. Empty function: @default moves if its scope is set first.
    std::function<std::optional<Scope>(const PlanLine& line)> default_holds = {};
};

// The followers of @default in INPUT that must keep the scope that the kernel gave them, each with its
// reason, as text: "`writeback` (left by the rule at FILE:LINE)"; "" if there are none.
std::string followers_to_leave(const PlanInput& input);

// The rule's wish for TARGET; nullptr if no rule matches.
const ScopeWish* wish_for(const Workqueue& target, const Policy& policy);

// Returns a line per target, in the given order.
std::vector<PlanLine> make_plan(const PlanInput& input);
// Calls TAKE with the number and the line of each target, for callers that do not keep all lines.
void plan_each(const PlanInput& input, const std::function<void(std::size_t, PlanLine)>& take);

// The shard size in force: the kernel's if it has one, else the policy's.
unsigned effective_shard_size(const KernelInfo& kernel, const Policy& policy);

}  // namespace wq
