// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Two things are fixed when the kernel boots.
//
// 1. The shards of cache_shard: cache_shard_size is read-only at run time, and the kernel makes the pods
// once. So we make two plans, one for the current shards and one for the requested shards. If the second
// plan needs pods that no scope of the running kernel has, only the boot option helps. (Large shards often
// equal the pods of `cache` or `smt`. A rule that names these scopes needs no reboot.)
//
// 2. The default scope of work that is queued before anybody writes to /sys. It matters if the parameter is
// not writable, if the machine's pods are unknown (then we write nothing new), or if work never leaves the
// pool on which it was first queued.
#include "plan/boot_advice.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "plan/plan.h"
#include "plan/pods.h"

namespace wq {
namespace {

using Pods = std::vector<CpuSet>;
using Names = std::vector<std::string>;

constexpr std::size_t kMostNames = 2;  // in a note

KernelInfo with_shards(KernelInfo kernel, unsigned size) {
    if (!kernel.has(Scope::cache_shard)) {
        kernel.scopes.push_back(Scope::cache_shard);
        std::ranges::sort(kernel.scopes);
    }
    kernel.cache_shard_size = size;
    kernel.pods.reset();  // the next boot has other pods
    return kernel;
}

bool is_settled(const PlanLine& line) {
    return line.planned && (line.finding == Finding::in_place || line.finding == Finding::change);
}

class Adviser {
  public:
    explicit Adviser(const BootInput& input)
        : in_(input), size_now_(input.kernel.cache_shard_size.value_or(kKernelShardSize)) {}

    BootAdvice advise() {
        if (in_.kernel.scopes.empty()) {
            out_.notes.emplace_back("this kernel has no affinity scopes: no boot option makes any");
            return std::move(out_);
        }
        lines_ = plan(in_.kernel, in_.kernel.has(Scope::cache_shard) ? size_now_ : size_asked());
        advise_shards();
        advise_default();
        return std::move(out_);
    }

  private:
    [[nodiscard]] unsigned size_asked() const {
        return in_.shard_size.value_or(in_.kernel.has(Scope::cache_shard) ? size_now_ : kKernelShardSize);
    }
    [[nodiscard]] std::vector<PlanLine> plan(const KernelInfo& kernel, unsigned size) const {
        return make_plan({in_.topology, kernel, in_.policy, in_.targets, in_.pods_unknown, size});
    }

    // The pods of a target on the running kernel; for another shard size, those of the next boot.
    const Pods& pods(const CpuSet& effective, Scope scope, unsigned size) {
        const bool as_it_runs = scope != Scope::cache_shard || size == in_.kernel.cache_shard_size;
        Pods& out = pods_[{effective.list(), scope, as_it_runs ? 0 : size}];
        if (out.empty())
            out = restrict_to(as_it_runs ? pods_in(in_.kernel, scope, in_.topology, size)
                                         : pods_of(scope, in_.topology, size),
                              effective);
        return out;
    }
    [[nodiscard]] std::string next_pods_unknown() const;
    void advise_shards();
    void compare_shards(const std::vector<PlanLine>& then);
    [[nodiscard]] std::optional<Scope> scope_with(const Pods& wanted, const CpuSet& effective);
    void tell_lacking(const Names& names);
    void advise_default();
    void advise_parameter(const PlanLine& line);
    void advise_old_pools();
    void tell_command_line(const PlanLine& line);
    void want_default(Scope scope, const std::string& reason);

    const BootInput& in_;
    unsigned size_now_;
    std::map<std::tuple<std::string, Scope, unsigned>, Pods> pods_;
    std::vector<PlanLine> lines_;  // with the current shards
    BootAdvice out_;
    std::optional<Scope> default_;  // the scope in the advised option
};

// Why the pods of the next boot with the same options cannot be derived. Those of this boot may be known
// only because they were read.
std::string Adviser::next_pods_unknown() const {
    if (!in_.pods_unknown.empty()) return in_.pods_unknown;
    KernelInfo next = in_.kernel;
    next.pods.reset();
    return why_pods_unknown(in_.topology, in_.topology.online - in_.topology.isolated, next, size_asked());
}

void Adviser::advise_shards() {
    const bool has_shards = in_.kernel.has(Scope::cache_shard);
    if (has_shards && size_asked() == size_now_) return;
    if (const std::string why = next_pods_unknown(); !why.empty()) {
        if (has_shards)
            out_.notes.push_back(
                fmt::format("pods unknown ({}): cannot tell whether shards of {} would differ", why,
                            plural(size_asked(), "core")));
        return;
    }
    compare_shards(plan(with_shards(in_.kernel, size_asked()), size_asked()));
}

// The coarsest scope of the running kernel that makes the pods WANTED of the CPUs EFFECTIVE.
std::optional<Scope> Adviser::scope_with(const Pods& wanted, const CpuSet& effective) {
    for (auto scope = in_.kernel.scopes.rbegin(); scope != in_.kernel.scopes.rend(); ++scope)
        if (pods(effective, *scope, size_now_) == wanted) return *scope;
    return std::nullopt;
}

void Adviser::compare_shards(const std::vector<PlanLine>& then) {
    Names out_of_reach;
    std::map<Scope, Names> by_rule;
    for (std::size_t i = 0; i < then.size(); i++) {
        if (!is_settled(then[i])) continue;
        const CpuSet& effective = then[i].target.effective;
        const Pods wanted = pods(effective, *then[i].planned, size_asked());
        if (is_settled(lines_[i]) && pods(effective, *lines_[i].planned, size_now_) == wanted) continue;
        if (const auto scope = scope_with(wanted, effective))
            by_rule[*scope].push_back(then[i].target.name);
        else
            out_of_reach.push_back(then[i].target.name);
    }
    if (!in_.kernel.has(Scope::cache_shard)) return tell_lacking(out_of_reach);
    if (!out_of_reach.empty())
        out_.options.push_back(
            {fmt::format("workqueue.cache_shard_size={}", size_asked()),
             fmt::format("shards of {} ({}) for {}: this kernel made its shards at boot, of {}, and no scope "
                         "makes the same pools",
                         plural(size_asked(), "core"), in_.asked_by, some_of(out_of_reach, kMostNames),
                         plural(size_now_, "core"))});
    for (const auto& [scope, names] : by_rule)
        out_.notes.push_back(fmt::format(
            "for shards of {} a rule with scope = \"{}\" makes the pools of {} now; that takes no "
            "boot option",
            plural(size_asked(), "core"), name_of(scope), some_of(names, kMostNames)));
}

void Adviser::tell_lacking(const Names& names) {
    if (names.empty()) return;
    out_.notes.push_back(fmt::format("{} cannot have shards of {} on this kernel: it has no cache_shard",
                                     some_of(names, kMostNames), plural(size_asked(), "core")));
}

void Adviser::want_default(Scope scope, const std::string& reason) {
    const std::string option = fmt::format("workqueue.default_affinity_scope={}", name_of(scope));
    if (default_ && *default_ != scope) {
        out_.notes.push_back(fmt::format("{}: this needs {}, but {} is already advised", reason, option,
                                         out_.options.back().option));
    } else if (default_) {
        out_.options.back().reason += "; " + reason;
    } else {
        out_.options.push_back({option, reason});
        default_ = scope;
    }
}

void Adviser::advise_default() {
    for (const PlanLine& line : lines_)
        if (line.target.kind == Kind::default_scope) advise_parameter(line);
    advise_old_pools();
}

void Adviser::advise_parameter(const PlanLine& line) {
    const auto& wanted = in_.policy.default_scope;
    if (!wanted.manage) return;
    if (line.finding == Finding::change && !in_.kernel.default_writable)
        return want_default(*line.planned, "the parameter default_affinity_scope cannot be written here");
    if (in_.kernel.default_on_cmdline) return tell_command_line(line);
    if (line.finding != Finding::pods_unknown) return;
    if (wanted.wish.kind != ScopeWish::Kind::fixed)
        out_.notes.push_back(fmt::format("pods unknown ({}): cannot plan @default", in_.pods_unknown));
    else if (line.target.scope.effective != wanted.wish.scope)
        want_default(
            wanted.wish.scope,
            fmt::format("{} names this scope, but nothing is written while the pods are unknown ({})",
                        wanted.origin.text(), in_.pods_unknown));
}

// We do not override the administrator's option, but we say which plan it prevents.
void Adviser::tell_command_line(const PlanLine& line) {
    if (in_.policy.default_scope.wish.kind != ScopeWish::Kind::automatic) return;
    KernelInfo kernel = in_.kernel;
    kernel.default_on_cmdline = false;
    for (const PlanLine& free : plan(kernel, size_now_))
        if (free.target.kind == Kind::default_scope && free.finding == Finding::change)
            out_.notes.push_back(
                fmt::format("workqueue.default_affinity_scope= is on the kernel command line and stays; "
                            "without it @default "
                            "({}) would be {}",
                            line.target.scope.word, name_of(*free.planned)));
}

// A workqueue that stays on `default` gets its first pools from the boot option.
void Adviser::advise_old_pools() {
    for (const PlanLine& line : lines_) {
        if (!in_.on_old_pools.contains(line.target.name) || line.finding != Finding::change) continue;
        if (line.target.kind != Kind::default_scope && line.target.scope.word != "default") continue;
        want_default(*line.planned,
                     line.target.name +
                         ": a comparison showed that its work stays on its old pools; with this option "
                         "workqueues on `default` start with the planned scope");
    }
}

}  // namespace

BootAdvice advise_boot(const BootInput& input) {
    return Adviser(input).advise();
}

// Notes that are no option to set.
//
// power_efficient (kernel/workqueue.c, workqueue_init_early()): nohz_full= turns it on, even where the
// command line turns it off. cpu_intensive_thresh_us (wq_cpu_intensive_thresh_init()): 10 ms, more on a CPU
// with less than 4000 BogoMIPS, unless the command line says how much.
std::vector<std::string> notes_on(const BootFacts& facts) {
    constexpr std::uint64_t kUsualHogUs = 10'000;
    const auto given = [&](const char* option) { return facts.cmdline.find(option) != std::string::npos; };
    std::vector<std::string> out;
    if (facts.pwlocks && !facts.isolated.empty() && !given("pwlocks="))
        out.push_back(fmt::format(
            "this kernel has pwlocks= (CONFIG_PWLOCKS): another CPU can do the per-CPU work of the isolated "
            "CPUs {}, which no scope and no mask moves",
            facts.isolated.list()));
    if (facts.power_efficient && !facts.nohz_full.empty())
        out.push_back(fmt::format(
            "nohz_full={} turns workqueue.power_efficient on, whatever the command line says: workqueues so "
            "marked are unbound here, and @default moves them",
            facts.nohz_full.list()));
    if (facts.hog_us == 0U)
        out.emplace_back(
            "workqueue.cpu_intensive_thresh_us is 0: the kernel sees no work that holds a CPU, and other "
            "work "
            "of that CPU waits for it");
    if (facts.hog_us.value_or(0) > kUsualHogUs)
        out.push_back(fmt::format(
            "workqueue.cpu_intensive_thresh_us is {:.1f} ms ({}; 10 ms is usual): \"hogged CPU\" and the "
            "count of hogs mean work that held a CPU for longer",
            static_cast<double>(*facts.hog_us) / 1000,
            given("cpu_intensive_thresh_us=") ? "by the command line"
                                              : "the kernel took this CPU for slow, or somebody wrote it"));
    return out;
}

}  // namespace wq
