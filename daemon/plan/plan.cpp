// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What `auto` chooses, and why.
//
// CPUs of a large pool contend for one pool->lock. A pool of one core has no such contention, but an idle
// neighbour cannot take its work. The kernel's answer since 7.1 is cache_shard: groups of about `size` cores
// inside one LLC. So the rule is: choose the coarsest scope that stays inside an LLC and whose largest pod
// would be a single shard. If every LLC is already that small, this is `cache`, the default, and nothing is
// written. The LLCs are the kernel's: its pods of `cache` if they were read, else those of
// kernel/llc_rule.cpp.
//
// The exception is a machine whose LLCs group nothing because its packages group nothing: a virtual machine
// with N sockets of one CPU. Every CPU has its own pool there, and dm-crypt lost 60% of its throughput with
// kernel 6.6. In this case the rule takes the finest of `numa` and `system` that joins cores, if it is
// nearer to the shard size on a logarithmic scale than a single core is. The exception does not apply to one
// package whose cores each have their own cache: those LLCs are real.
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "model/lacks_scopes.h"
#include "plan/pods.h"

namespace wq {
namespace {

using Pods = std::vector<CpuSet>;

// What we know about one set of CPUs. It is the same for every workqueue with that mask.
struct Choice {
    std::vector<Candidate> candidates;  // coarsest first
    std::map<Scope, std::size_t> candidate_of;
    std::optional<Scope> automatic;
    std::string why;

    [[nodiscard]] bool same_pods(Scope a, Scope b) const {
        const auto x = candidate_of.find(a);
        const auto y = candidate_of.find(b);
        return x != candidate_of.end() && y != candidate_of.end() && x->second == y->second;
    }
};

// The machine for the planner: the pods of every scope, computed once.
class Machine {
  public:
    Machine(const Topology& topology, const KernelInfo& kernel, unsigned shard_size)
        : cores_(topology), size_(shard_size) {
        for (auto scope = kernel.scopes.rbegin(); scope != kernel.scopes.rend(); ++scope)
            pods_.emplace_back(*scope, pods_in(kernel, *scope, topology, shard_size));
        llcs_ = pods_in(kernel, Scope::cache, topology, shard_size);
        // Checks the LLCs, not `llcs_`: isolated CPUs have no LLC, but they form one more pod.
        const auto small = [&](const CpuSet& cpus) {
            return cores_.cores_in(cpus) == 1 && cpus.count() <= 2;
        };
        const auto llcs = llcs_in(kernel, topology);
        one_core_packages_ = !llcs.empty() && !topology.packages.empty() &&
                             std::ranges::all_of(topology.packages, small) &&
                             std::ranges::all_of(llcs, [&](const Llc& llc) { return small(llc.cpus); });
        for (unsigned i = 0; i < llcs_.size(); i++)
            for (const unsigned cpu : llcs_[i].cpus()) {
                if (llc_of_.size() <= cpu) llc_of_.resize(cpu + 1);
                llc_of_[cpu] = i;
            }
    }

    [[nodiscard]] Choice choose(const CpuSet& effective) const;

  private:
    [[nodiscard]] std::size_t shards(std::size_t cores) const { return (cores + size_ / 2) / size_; }
    [[nodiscard]] bool inside_llcs(const Pods& pods) const;
    [[nodiscard]] std::size_t limit() const { return 2 * size_ - size_ / 2 - 1; }  // most cores of one shard
    // Most cores that choose_wider() joins: more are not nearer to the shard size than one core is.
    [[nodiscard]] std::size_t most_joined() const {
        return std::max<std::size_t>(std::size_t{size_} * size_, 2) - 1;
    }
    [[nodiscard]] std::string why_not(const Candidate& c, const Pods& pods) const;
    void add_candidate(Scope scope, const Pods& pods, Choice& choice) const;
    bool choose_inside_llc(const std::vector<Pods>& parts, Choice& choice) const;
    bool choose_wider(const CpuSet& effective, Choice& choice) const;

    CoreIndex cores_;
    unsigned size_;
    std::vector<std::pair<Scope, Pods>> pods_;  // coarsest first
    Pods llcs_;
    bool one_core_packages_ = false;  // every package, and so every LLC, is one core
    std::vector<unsigned> llc_of_;    // CPU -> index in llcs_
};

// Only the LLC of a pod's first CPU can contain the whole pod, so one check per pod is enough.
bool Machine::inside_llcs(const Pods& pods) const {
    return std::all_of(pods.begin(), pods.end(),
                       [&](const CpuSet& pod) { return llcs_[llc_of_[pod.first()]].contains(pod); });
}

// Why the pods of C are too coarse.
std::string Machine::why_not(const Candidate& c, const Pods& pods) const {
    const std::string what = fmt::format("`{}` ({})", name_of(c.scope), plural(c.max_cores, "core"));
    if (one_core_packages_ && c.max_cores > most_joined())
        return fmt::format("{} exceeds the limit of {} for one-core sockets", what, most_joined());
    if (!inside_llcs(pods)) return fmt::format("`{}` crosses LLCs", name_of(c.scope));
    return fmt::format("{} exceeds the limit of {}", what, limit());
}

void Machine::add_candidate(Scope scope, const Pods& pods, Choice& choice) const {
    Candidate candidate{scope, {scope}, pods.size(), SIZE_MAX, 0};
    for (const CpuSet& pod : pods) {
        const std::size_t n = cores_.cores_in(pod);
        candidate.min_cores = std::min(candidate.min_cores, n);
        candidate.max_cores = std::max(candidate.max_cores, n);
    }
    choice.candidate_of[scope] = choice.candidates.size();
    choice.candidates.push_back(std::move(candidate));
}

bool Machine::choose_inside_llc(const std::vector<Pods>& parts, Choice& choice) const {
    std::string coarser;
    for (std::size_t i = 0; i < choice.candidates.size(); i++) {
        const Candidate& c = choice.candidates[i];
        if (shards(c.max_cores) <= 1 && inside_llcs(parts[i])) {
            choice.automatic = c.scope;
            choice.why =
                fmt::format("`{}`: pools of {}{}", name_of(c.scope), plural(c.max_cores, "core"), coarser);
            return true;
        }
        coarser = "; " + why_not(c, parts[i]);
    }
    return false;
}

bool Machine::choose_wider(const CpuSet& effective, Choice& choice) const {
    if (!one_core_packages_ || cores_.cores_in(effective) <= 1) return false;
    for (const Scope scope : {Scope::numa, Scope::system}) {
        const auto found = choice.candidate_of.find(scope);
        if (found == choice.candidate_of.end()) continue;
        const Candidate& c = choice.candidates[found->second];
        if (c.max_cores <= 1) continue;
        if (c.max_cores > most_joined()) return false;
        choice.automatic = c.scope;
        choice.why = fmt::format("no LLC grouping; `{}` gives pools of {}, shard size {}", name_of(c.scope),
                                 plural(c.max_cores, "core"), size_);
        return true;
    }
    return false;
}

Choice Machine::choose(const CpuSet& effective) const {
    Choice choice;
    std::vector<Pods> parts;  // index: candidate
    for (const auto& [scope, pods] : pods_) {
        Pods part = restrict_to(pods, effective);
        const auto same = std::find(parts.begin(), parts.end(), part);
        if (same == parts.end()) {
            add_candidate(scope, part, choice);
            parts.push_back(std::move(part));
        } else {
            const auto i = static_cast<std::size_t>(same - parts.begin());
            choice.candidate_of[scope] = i;
            choice.candidates[i].same.insert(choice.candidates[i].same.begin(), scope);
        }
    }
    if (choose_wider(effective, choice) || choose_inside_llc(parts, choice)) return choice;
    if (choice.candidate_of.contains(Scope::smt)) {
        choice.automatic = choice.candidates[choice.candidate_of[Scope::smt]].scope;
        choice.why = "`smt`: pools of 1 core; no other scope stays inside an LLC";
    }
    return choice;
}

// Plans one target after another and caches the choice per mask.
class Planner {
  public:
    explicit Planner(const PlanInput& input)
        : in_(input), machine_(input.topology, input.kernel, input.shard_size) {}

    PlanLine line(const Workqueue& target);

  private:
    void decide(PlanLine& line);
    void decide_by_wish(PlanLine& line, const ScopeWish& wish);
    void settle(PlanLine& line, Scope wanted, const std::string& why, const Choice& choice);
    [[nodiscard]] std::optional<Scope> effective_after_default(const Workqueue& target) const;
    const Choice& choice_for(const CpuSet& effective);

    const PlanInput& in_;
    Machine machine_;
    std::map<std::string, Choice> choices_;  // CPU list -> choice
    std::optional<Scope> default_moves_to_;  // the future scope of @default, if it will be written
};

const Choice& Planner::choice_for(const CpuSet& effective) {
    const std::string key = effective.list();
    auto found = choices_.find(key);
    if (found == choices_.end()) found = choices_.emplace(key, machine_.choose(effective)).first;
    return found->second;
}

// A workqueue on `default` follows @default, which is written first.
std::optional<Scope> Planner::effective_after_default(const Workqueue& target) const {
    if (target.kind == Kind::unbound && target.scope.word == "default" && default_moves_to_)
        return default_moves_to_;
    return target.scope.effective;
}

Action action_for(Finding finding) {
    if (finding == Finding::untouchable) return Action::skip;
    return finding == Finding::change ? Action::write : Action::none;
}

void put(PlanLine& line, Finding finding, std::string reason) {
    line.finding = finding;
    line.action = action_for(finding);
    line.reason = std::move(reason);
}

void Planner::settle(PlanLine& line, Scope wanted, const std::string& why, const Choice& choice) {
    const auto now = effective_after_default(line.target);
    const bool strict_differs = line.strict && line.target.strict && *line.strict != *line.target.strict;
    line.planned = wanted;
    if (!now || !choice.same_pods(*now, wanted)) {
        put(line, Finding::change, why);
        return;
    }
    line.planned = now;
    const bool follows = now != line.target.scope.effective;
    std::string reason = follows ? fmt::format("follows @default to {}", name_of(*now))
                         : *now == wanted
                             ? "in place: " + why
                             : fmt::format("in place: `{}` makes the same pods; {}", name_of(*now), why);
    if (strict_differs)
        put(line, Finding::change, fmt::format("the rule has strict = {}; {}", *line.strict, reason));
    else
        put(line, Finding::in_place, std::move(reason));
}

void Planner::decide_by_wish(PlanLine& line, const ScopeWish& wish) {
    line.planned = effective_after_default(line.target);
    if (wish.kind == ScopeWish::Kind::leave) return put(line, Finding::leave, "the rule says leave");
    if (in_.kernel.scopes.empty()) return put(line, Finding::unsupported, lacks_scopes(in_.kernel));
    if (wish.kind == ScopeWish::Kind::fixed && !in_.kernel.has(wish.scope))
        return put(line, Finding::unsupported,
                   fmt::format("unsupported: this kernel has no {}", name_of(wish.scope)));
    if (!in_.pods_unknown.empty())
        return put(line, Finding::pods_unknown, "pods unknown: " + in_.pods_unknown);
    const Choice& choice = choice_for(line.target.effective);
    if (choice.candidates.front().pools == 0)
        return put(line, Finding::pods_unknown, "pods unknown: none of its CPUs is online");
    line.candidates = choice.candidates;
    if (wish.kind == ScopeWish::Kind::fixed)
        return settle(line, wish.scope, fmt::format("the rule names `{}`", name_of(wish.scope)), choice);
    if (!choice.automatic) return put(line, Finding::leave, "no scope to choose from");
    settle(line, *choice.automatic, choice.why, choice);
}

void Planner::decide(PlanLine& line) {
    const Workqueue& target = line.target;
    if (!target.untouchable.empty()) return put(line, Finding::untouchable, target.untouchable);
    line.planned = target.scope.effective;
    if (target.kind == Kind::default_scope) {
        const auto& wanted = in_.policy.default_scope;
        if (!wanted.manage) return put(line, Finding::unmanaged, "[default_scope] has manage = false");
        line.rule = wanted.origin;
        if (in_.kernel.default_on_cmdline && wanted.wish.kind == ScopeWish::Kind::automatic)
            return put(line, Finding::leave,
                       "@default is left: workqueue.default_affinity_scope= is on the kernel command line");
        return decide_by_wish(line, wanted.wish);
    }
    const WorkqueueRule* rule = in_.policy.rule_for(target.name);
    if (rule == nullptr) return put(line, Finding::unmanaged, "no rule matches");
    line.rule = rule->origin;
    line.strict = rule->strict;
    decide_by_wish(line, rule->wish);
}

PlanLine Planner::line(const Workqueue& target) {
    PlanLine line;
    line.target = target;
    line.now = effective_after_default(target);
    decide(line);
    if (target.kind == Kind::default_scope && line.action == Action::write) default_moves_to_ = line.planned;
    if (in_.default_holds) default_moves_to_ = in_.default_holds;
    return line;
}

}  // namespace

std::string_view name_of(Action action) {
    switch (action) {
        case Action::none:
            return "none";
        case Action::write:
            return "write";
        case Action::skip:
            return "skip";
    }
    return "?";
}

const Candidate* candidate_with(const Planned& plan, Scope scope) {
    for (const Candidate& c : plan.candidates)
        if (std::find(c.same.begin(), c.same.end(), scope) != c.same.end()) return &c;
    return nullptr;
}

void plan_each(const PlanInput& input, const std::function<void(std::size_t, PlanLine)>& take) {
    Planner planner(input);
    // @default comes first, because the workqueues on `default` follow it.
    for (const bool parameter : {true, false})
        for (std::size_t i = 0; i < input.targets.size(); i++)
            if ((input.targets[i].kind == Kind::default_scope) == parameter)
                take(i, planner.line(input.targets[i]));
}

std::vector<PlanLine> make_plan(const PlanInput& input) {
    std::vector<PlanLine> out(input.targets.size());
    plan_each(input, [&](std::size_t i, PlanLine line) { out[i] = std::move(line); });
    return out;
}

unsigned effective_shard_size(const KernelInfo& kernel, const Policy& policy) {
    return kernel.cache_shard_size.value_or(policy.shard_size);
}

}  // namespace wq
