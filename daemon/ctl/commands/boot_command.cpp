// SPDX-License-Identifier: LGPL-2.1-or-later
//
// `plan --boot`: what only the kernel command line can set, and what its options do to workqueues.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "machine/isolation.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

struct BootAdvice {
    // "workqueue.cache_shard_size=6" and its reason; empty if settings at run time are enough.
    std::vector<std::pair<std::string, std::string>> options;
    std::vector<std::string> notes;  // other facts that matter before a reboot
};

// The kernel makes the shards of cache_shard once, and their size is read-only afterwards. A rule that names
// a scope with the same pools needs no reboot.
void advise_shards(const Options& options, const Machine& machine, BootAdvice& out) {
    const Topology& topology = machine.topology;
    const auto set_by = machine.policy.origins.find("shard.size");
    const bool is_asked = options.shard_size || set_by != machine.policy.origins.end();
    const auto now = machine.kernel.cache_shard_size;
    const unsigned asked = options.shard_size.value_or(machine.policy.shard_size);
    if (!is_asked || !now || asked == *now) return;
    const std::string shards = "shards of " + plural(asked, "core");
    KernelInfo next = machine.kernel;
    next.pods.reset();  // the next boot has others
    const std::string unknown =
        !machine.pods_unknown.empty()
            ? machine.pods_unknown
            : why_pods_unknown(topology, topology.online - topology.isolated, next, asked);
    if (!unknown.empty())
        return out.notes.push_back(
            fmt::format("pods unknown ({}): cannot tell whether {} would differ", unknown, shards));
    const auto wanted = pods_of(Scope::cache_shard, topology, asked);
    const auto makes_them = [&](Scope scope) {
        return pods_in(machine.kernel, scope, topology, *now) == wanted;
    };
    if (makes_them(Scope::cache_shard)) return;
    for (const Scope scope : {Scope::system, Scope::numa, Scope::cache, Scope::smt})
        if (machine.kernel.has(scope) && makes_them(scope))
            return out.notes.push_back(
                fmt::format("a rule with scope = \"{}\" makes {} now; that takes no boot option",
                            name_of(scope), shards));
    out.options.emplace_back(
        fmt::format("workqueue.cache_shard_size={}", asked),
        fmt::format("{} ({}): this kernel made its shards at boot, of {}, and no scope makes the same pools",
                    shards, options.shard_size ? "--shard-size" : set_by->second.text(),
                    plural(*now, "core")));
}

// The default scope matters at boot if the parameter is not writable, or if nothing is written because the
// machine's pods are unknown.
void advise_default(const Machine& machine, BootAdvice& out) {
    const auto& wanted = machine.policy.default_scope;
    for (const PlanLine& line : machine.plan()) {
        if (line.target.kind != Kind::default_scope || !wanted.manage) continue;
        const auto advise = [&](Scope scope, const std::string& reason) {
            out.options.emplace_back(fmt::format("workqueue.default_affinity_scope={}", name_of(scope)),
                                     reason);
        };
        if (line.finding == Finding::change && !machine.kernel.default_writable)
            advise(*line.planned, "the parameter default_affinity_scope cannot be written here");
        if (line.finding == Finding::pods_unknown && wanted.wish.kind == ScopeWish::Kind::fixed &&
            line.target.scope.effective != wanted.wish.scope)
            advise(wanted.wish.scope,
                   fmt::format("{} names this scope, but nothing is written while the pods are unknown ({})",
                               wanted.origin.text(), machine.pods_unknown));
    }
}

// The types of the kernel are read only where CPUs are isolated, because that takes long.
//
// power_efficient (kernel/workqueue.c, workqueue_init_early()): nohz_full= turns it on, even where the
// command line turns it off. cpu_intensive_thresh_us (wq_cpu_intensive_thresh_init()): 10 ms, more on a CPU
// with less than 4000 BogoMIPS.
void note_options(const Paths& paths, const KernelInfo& kernel, std::vector<std::string>& out) {
    constexpr std::uint64_t kUsualHogUs = 10'000;
    const std::string cmdline = read_first_line(paths.cmdline());
    const Isolation isolation = read_isolation(paths);
    const CpuSet isolated = isolation.isolcpus | isolation.nohz_full;
    if (!isolated.empty() && cmdline.find("pwlocks=") == std::string::npos &&
        read_features(paths, kernel).pwlocks.value_or(false))
        out.push_back(fmt::format(
            "this kernel has pwlocks= (CONFIG_PWLOCKS): another CPU can do the per-CPU work of the "
            "isolated CPUs {}, which no scope and no mask moves",
            isolated.list()));
    if (!isolation.nohz_full.empty() && read_first_line(paths.parameters() + "/power_efficient") == "Y")
        out.push_back(
            fmt::format("nohz_full={} turns workqueue.power_efficient on, whatever the command line says: "
                        "workqueues so marked are unbound here, and @default moves them",
                        isolation.nohz_full.list()));
    const auto hog_us =
        number_of<std::uint64_t>(read_first_line(paths.parameters() + "/cpu_intensive_thresh_us"));
    if (hog_us == 0U || hog_us.value_or(0) > kUsualHogUs)
        out.push_back(
            fmt::format("workqueue.cpu_intensive_thresh_us is {} us (10000 is usual, 0 is off): \"hogged "
                        "CPU\" and the count of hogs mean work that held a CPU for longer",
                        *hog_us));
}

}  // namespace

int plan_boot(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    BootAdvice advice;
    if (machine->kernel.scopes.empty())
        advice.notes.emplace_back("this kernel has no affinity scopes: no boot option makes any");
    advise_shards(options, *machine, advice);
    advise_default(*machine, advice);
    if (const auto tree = tree_of(options); tree && !machine->kernel.release.empty())
        note_options(*tree, machine->kernel, advice.notes);
    if (options.json) {
        nlohmann::json boot = nlohmann::json::array();
        for (const auto& [option, reason] : advice.options)
            boot.push_back({{"option", option}, {"reason", reason}});
        fmt::print("{}\n", json_text<nlohmann::json>({{"kernel", kernel_json(machine->kernel)},
                                                      {"boot", std::move(boot)},
                                                      {"notes", advice.notes}}));
        return kOk;
    }
    if (advice.options.empty()) print_text("The plan needs no boot option.");
    for (const auto& [option, reason] : advice.options) {
        fmt::print("{}\n", option);
        print_text(reason, 4);
    }
    for (const std::string& note : advice.notes) print_text("Note: " + note);
    return kOk;
}

}  // namespace wq::ctl
