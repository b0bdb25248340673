// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What `auto` chooses, and why: the coarsest scope that stays inside an LLC and whose largest pod would be a
// single shard. The LLCs are the kernel's: its pods of `cache` if they were read, else those of
// machine/llc_rule.cpp.
//
// The exception is a virtual machine with N sockets of one CPU, whose LLCs group nothing because its packages
// group nothing: dm-crypt lost 60% of its throughput there with kernel 6.6. The rule then takes the finest of
// `numa` and `system` that joins cores, if it is nearer to the shard size on a logarithmic scale than a
// single core is. Not for one package whose cores each have their own cache: those LLCs are real.
#include "plan/plan.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "base/text.h"
#include "machine/isolation.h"
#include "machine/udev.h"
#include "plan/pods.h"

namespace wq {
namespace {

using Pods = std::vector<CpuSet>;

constexpr const char* kOnCommandLine = "workqueue.default_affinity_scope= is on the kernel command line";

const Candidate* candidate_with(const std::vector<Candidate>& candidates, Scope scope) {
    for (const Candidate& one : candidates)
        if (std::ranges::find(one.same, scope) != one.same.end()) return &one;
    return nullptr;
}

// What we know about one set of CPUs. It is the same for every workqueue with that mask.
struct Choice {
    std::vector<Candidate> candidates;  // coarsest first
    std::optional<Scope> automatic;
    std::string why;

    [[nodiscard]] const Candidate* with(Scope scope) const { return candidate_with(candidates, scope); }
    [[nodiscard]] bool same_pods(Scope a, Scope b) const { return with(a) != nullptr && with(a) == with(b); }
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
        llc_of_ = SetOf(llcs_);
    }

    [[nodiscard]] Choice choose(const CpuSet& effective) const {
        Choice choice;
        std::vector<Pods> parts;  // index: candidate
        for (const auto& [scope, pods] : pods_) {
            Pods part = restrict_to(pods, effective);
            const auto same = std::find(parts.begin(), parts.end(), part);
            if (same != parts.end()) {
                auto& scopes = choice.candidates[static_cast<std::size_t>(same - parts.begin())].same;
                scopes.insert(scopes.begin(), scope);
                continue;
            }
            Candidate& one =
                choice.candidates.emplace_back(Candidate{scope, {scope}, part.size(), SIZE_MAX, 0});
            for (const CpuSet& pod : part) {
                const std::size_t cores = cores_.cores_in(pod);
                one.min_cores = std::min(one.min_cores, cores);
                one.max_cores = std::max(one.max_cores, cores);
            }
            parts.push_back(std::move(part));
        }
        if (choose_wider(effective, choice) || choose_inside_llc(parts, choice)) return choice;
        if (const Candidate* smt = choice.with(Scope::smt)) {
            choice.automatic = smt->scope;
            choice.why = "`smt`: pools of 1 core; no other scope stays inside an LLC";
        }
        return choice;
    }

  private:
    // Only the LLC of a pod's first CPU can contain the whole pod, so one check per pod is enough.
    [[nodiscard]] bool inside_llcs(const Pods& pods) const {
        return std::ranges::all_of(pods, [&](const CpuSet& pod) {
            const CpuSet* llc = llc_of_.of(pod.first());
            return llc != nullptr && llc->contains(pod);
        });
    }

    [[nodiscard]] std::size_t limit() const { return 2 * size_ - size_ / 2 - 1; }  // most cores of one shard
    // Most cores that choose_wider() joins: more are not nearer to the shard size than one core is.
    [[nodiscard]] std::size_t most_joined() const { return std::max(size_ * size_, 2UL) - 1; }
    // Why the pods of C are too coarse.
    [[nodiscard]] std::string why_not(const Candidate& c, const Pods& pods) const {
        const std::string what = fmt::format("`{}` ({})", name_of(c.scope), plural(c.max_cores, "core"));
        if (one_core_packages_ && c.max_cores > most_joined())
            return fmt::format("{} exceeds the limit of {} for one-core sockets", what, most_joined());
        if (!inside_llcs(pods)) return fmt::format("`{}` crosses LLCs", name_of(c.scope));
        return fmt::format("{} exceeds the limit of {}", what, limit());
    }

    bool choose_inside_llc(const std::vector<Pods>& parts, Choice& choice) const {
        std::string coarser;
        for (std::size_t i = 0; i < choice.candidates.size(); i++) {
            const Candidate& c = choice.candidates[i];
            if (c.max_cores <= limit() && inside_llcs(parts[i])) {
                choice.automatic = c.scope;
                choice.why = fmt::format("`{}`: pools of {}{}", name_of(c.scope), plural(c.max_cores, "core"),
                                         coarser);
                return true;
            }
            coarser = "; " + why_not(c, parts[i]);
        }
        return false;
    }

    bool choose_wider(const CpuSet& effective, Choice& choice) const {
        if (!one_core_packages_ || cores_.cores_in(effective) <= 1) return false;
        for (const Scope scope : {Scope::numa, Scope::system}) {
            const Candidate* c = choice.with(scope);
            if (c == nullptr || c->max_cores <= 1) continue;
            if (c->max_cores > most_joined()) return false;
            choice.automatic = c->scope;
            choice.why = fmt::format("no LLC grouping; `{}` gives pools of {}, shard size {}",
                                     name_of(c->scope), plural(c->max_cores, "core"), size_);
            return true;
        }
        return false;
    }

    CoreIndex cores_;
    std::size_t size_;
    std::vector<std::pair<Scope, Pods>> pods_;  // coarsest first
    Pods llcs_;
    bool one_core_packages_ = false;  // every package, and so every LLC, is one core
    SetOf llc_of_;                    // of llcs_
};

bool follows_default(const Workqueue& target) {
    return target.kind == Kind::unbound && target.scope.word == "default";
}

constexpr auto kStrict = "affinity_strict is 1, and its rule has no `strict`";
// On another scope it would be strict, too: nobody asked for that.
bool is_left_strict(const WorkqueueRule& rule, const Workqueue& target) {
    return !rule.strict && target.strict == true;
}

// Why TARGET, which follows @default, must keep the scope that the kernel gave it; "" if it may be moved.
std::string why_must_stay(const PlanInput& in, const Workqueue& target) {
    if (target.untouchable == kOptedOutByUdev) return "WQ_TUNED_IGNORE";
    if (target.untouchable == kNotProcessedByUdev)
        return in.default_moved ? "" : "udev has not processed it yet";
    if (in.reverted.contains(target.name)) return "reverted by an operator's order";
    const WorkqueueRule* rule = in.policy.rule_for(target.name);
    if (rule != nullptr && rule->wish.kind == ScopeWish::Kind::leave)
        return "left by the rule at " + rule->origin.text();
    if (rule != nullptr && is_left_strict(*rule, target)) return kStrict;
    const std::string why = in.named_only.why(in.policy, target);
    return why.substr(0, why.find(':'));
}

void put(PlanLine& line, Finding finding, std::string reason) {
    line.finding = finding;
    line.reason = std::move(reason);
}

// Plans one target after another and caches the choice per mask.
class Planner {
  public:
    explicit Planner(const PlanInput& input)
        : in_(input), machine_(input.topology, input.kernel, input.shard_size) {}

    PlanLine line(const Workqueue& target) {
        PlanLine line;
        line.target = target;
        line.now = follows_default(target) && default_holds_ ? default_holds_ : target.scope.effective;
        decide(line);
        const bool is_left = line.finding == Finding::leave || line.finding == Finding::unmanaged;
        if (is_left && line.now && line.now != target.scope.effective)
            line.reason += fmt::format("; it follows @default to {}", name_of(*line.now));
        const ScopeWish* wish = wish_for(target, in_.policy);
        if (line.finding == Finding::in_place) line.action = Action::none;
        if (line.finding == Finding::change)
            line.action = wish != nullptr && wish->sets_first() ? Action::set : Action::compare;
        return line;
    }

    void default_holds(std::optional<Scope> scope) { default_holds_ = scope; }

  private:
    void decide(PlanLine& line) {
        const Workqueue& target = line.target;
        if (!target.untouchable.empty()) return put(line, Finding::untouchable, target.untouchable);
        line.planned = line.now;
        if (target.kind == Kind::default_scope) return decide_default(line);
        const WorkqueueRule* rule = in_.policy.rule_for(target.name);
        if (rule == nullptr) return put(line, Finding::unmanaged, "no rule matches");
        line.rule = rule->origin;
        line.strict = rule->strict;
        if (in_.kernel.default_on_cmdline && follows_default(target) && !is_named(in_.policy, target) &&
            rule->wish.kind == ScopeWish::Kind::automatic)
            return put(line, Finding::leave, kOnCommandLine);
        decide_by_wish(line, rule->wish);
        if ((line.finding == Finding::change || line.finding == Finding::in_place) &&
            is_left_strict(*rule, target))
            put(line, Finding::leave, kStrict);
    }

    // Who sets @default himself moves all its followers.
    void decide_default(PlanLine& line) {
        const auto& wanted = in_.policy.default_scope;
        if (!wanted.manage) return put(line, Finding::unmanaged, "[default_scope] has manage = false");
        line.rule = wanted.origin;
        if (in_.kernel.default_on_cmdline && wanted.wish.kind == ScopeWish::Kind::automatic)
            return put(line, Finding::leave, kOnCommandLine);
        decide_by_wish(line, wanted.wish);
        if (line.finding != Finding::change && line.finding != Finding::in_place) return;
        const std::string left = followers_to_leave(in_);
        if (left.empty()) return;
        if (!wanted.wish.sets_first())
            put(line, Finding::followers, "followers must stay at the kernel's scope: " + left);
        else if (line.finding == Finding::change)
            line.reason += "; moves followers that are otherwise left: " + left;
    }

    void decide_by_wish(PlanLine& line, const ScopeWish& wish) {
        const bool known = !in_.kernel.scopes.empty() && in_.pods_unknown.empty() && line.now;
        const Choice* choice = known ? &choice_for(line.target.effective) : nullptr;
        const bool online = known && choice->candidates.front().pools > 0;
        if (online) line.candidates = choice->candidates;  // also of what is left: people compare them
        if (wish.kind == ScopeWish::Kind::leave) return put(line, Finding::leave, "the rule says leave");
        if (std::string why = in_.named_only.why(in_.policy, line.target); !why.empty())
            return put(line, Finding::leave, std::move(why));
        if (in_.kernel.scopes.empty()) return put(line, Finding::unsupported, lacks_scopes(in_.kernel));
        if (wish.kind == ScopeWish::Kind::fixed && !in_.kernel.has(wish.scope))
            return put(line, Finding::unsupported,
                       fmt::format("unsupported: this kernel has no {}", name_of(wish.scope)));
        if (!in_.pods_unknown.empty())
            return put(line, Finding::pods_unknown, "pods unknown: " + in_.pods_unknown);
        if (!line.now)
            return put(line, Finding::pods_unknown,
                       fmt::format("pods unknown: those of '{}'", line.target.scope.word));
        if (!online) return put(line, Finding::pods_unknown, "pods unknown: none of its CPUs is online");
        if (wish.kind == ScopeWish::Kind::fixed)
            return settle(line, wish.scope, fmt::format("the rule names `{}`", name_of(wish.scope)), *choice);
        if (!choice->automatic) return put(line, Finding::leave, "no scope to choose from");
        const auto is_planned = [&](Scope each) { return choice->same_pods(each, *choice->automatic); };
        if (!wish.candidates.empty() && std::ranges::none_of(wish.candidates, is_planned))
            return settle(line, *line.now, "the plan is not one of the rule's candidates", *choice);
        settle(line, *choice->automatic, choice->why, *choice);
    }

    void settle(PlanLine& line, Scope wanted, const std::string& why, const Choice& choice) {
        const auto now = line.now;
        line.planned = wanted;
        if (!choice.same_pods(*now, wanted)) return put(line, Finding::change, why);
        line.planned = now;
        put(line, Finding::in_place,
            now != line.target.scope.effective ? fmt::format("follows @default to {}", name_of(*now))
            : *now == wanted                   ? "in place: " + why
                             : fmt::format("in place: `{}` makes the same pods; {}", name_of(*now), why));
        if (line.strict && line.target.strict && *line.strict != *line.target.strict)
            put(line, Finding::change,
                fmt::format("the rule has strict = {}; {}", *line.strict, line.reason));
    }

    const Choice& choice_for(const CpuSet& effective) {
        const std::string key = effective.list();
        auto found = choices_.find(key);
        if (found == choices_.end()) found = choices_.emplace(key, machine_.choose(effective)).first;
        return found->second;
    }

    const PlanInput& in_;
    Machine machine_;
    std::map<std::string, Choice> choices_;  // CPU list -> choice
    std::optional<Scope> default_holds_;     // the scope to which @default moves its followers
};

}  // namespace

std::string_view name_of(Action action) {
    static constexpr std::array<std::string_view, 4> kNames = {"none", "compare", "set", "skip"};
    return kNames.at(static_cast<std::size_t>(action));
}

const Candidate* candidate_with(const Planned& plan, Scope scope) {
    return candidate_with(plan.candidates, scope);
}

std::string followers_to_leave(const PlanInput& input) {
    std::vector<std::string> out;
    for (const Workqueue& target : input.targets)
        if (follows_default(target))
            if (const std::string why = why_must_stay(input, target); !why.empty())
                out.push_back(fmt::format("`{}` ({})", target.name, why));
    std::ranges::sort(out, natural_less);
    return some_of(out, 3);
}

const ScopeWish* wish_for(const Workqueue& target, const Policy& policy) {
    if (target.kind == Kind::default_scope) return &policy.default_scope.wish;
    const WorkqueueRule* rule = policy.rule_for(target.name);
    return rule == nullptr ? nullptr : &rule->wish;
}

void plan_each(const PlanInput& input, const std::function<void(std::size_t, PlanLine)>& take) {
    Planner planner(input);
    // @default comes first, because the workqueues on `default` follow it.
    for (std::size_t i = 0; i < input.targets.size(); i++) {
        if (input.targets[i].kind != Kind::default_scope) continue;
        const PlanLine line = planner.line(input.targets[i]);
        take(i, line);
        planner.default_holds(input.default_holds          ? input.default_holds(line)
                              : line.action == Action::set ? line.planned
                                                           : std::nullopt);
    }
    for (std::size_t i = 0; i < input.targets.size(); i++)
        if (input.targets[i].kind != Kind::default_scope) take(i, planner.line(input.targets[i]));
}

std::vector<PlanLine> make_plan(const PlanInput& input) {
    std::vector<PlanLine> out(input.targets.size());
    plan_each(input, [&](std::size_t i, PlanLine line) { out[i] = std::move(line); });
    return out;
}

unsigned effective_shard_size(const KernelInfo& kernel, const Policy& policy) {
    return kernel.cache_shard_size.value_or(policy.shard_size);
}

bool is_named(const Policy& policy, const Workqueue& target) {
    // Rules with evidence are those of `fleet policy`: nobody has looked at this target.
    if (const DefaultScope& table = policy.default_scope; target.kind == Kind::default_scope)
        return !table.origin.file.empty() && table.evidence.empty();
    const WorkqueueRule* rule = policy.rule_for(target.name);
    return rule != nullptr && rule->names(target.name) && rule->evidence.empty();
}

std::string NamedOnly::why(const Policy& policy, const Workqueue& target) const {
    std::string out;
    if (!host.empty())
        out = host + ": only targets that a rule names (without `evidence`) are written or compared";
    else if (serves_swap(target.name, swap))
        out = "it serves swap: written or compared only if a rule names it (without `evidence`)";
    return out.empty() || is_named(policy, target) ? "" : out;
}

}  // namespace wq
