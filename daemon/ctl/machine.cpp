// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/machine.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bpf/bpf_dump.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_source.h"
#include "evidence/json_values.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "machine/udev.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "plan/pods.h"
#include "policy/rule_warnings.h"
#include "service/restorer.h"
#include "service/status.h"
#include "targets/conditions.h"
#include "targets/target.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// A placeholder for any unbound workqueue, on the kernel's default.
Workqueue any_workqueue(const Topology& topology, const KernelInfo& kernel) {
    Workqueue out;
    out.name = "*";
    out.scope = {"default", kernel.default_scope()};
    out.strict = false;
    out.effective = topology.online - topology.isolated;
    return out;
}

Result<std::vector<Workqueue>> read_targets(const WorkqueueFs& files, bool ask_udev) {
    const auto names = files.names();
    if (!names) return tl::unexpected(names.error());
    std::vector<Workqueue> out;
    const CpuSet unbound_mask = files.unbound_mask();
    for (const std::string& name : *names) {
        auto target = files.read(name, unbound_mask);
        if (!target) continue;  // it vanished after it was listed
        if (ask_udev && target->untouchable.empty() && target->kind != Kind::default_scope &&
            udev_opted_out(name).value_or(false))
            target->untouchable = kOptedOutByUdev;
        out.push_back(std::move(*target));
    }
    return out;
}

// Sets Machine::baselines and `reverted`: as the daemon says, or, if none runs, as its file says, if that can
// be read. Like in all_before_us(), what others wrote stays, and so does a pin of @default.
void read_ownership(const Paths& paths, const Result<json>& status, Machine& machine) {
    const auto take = [&machine](const std::string& name, const std::string& order, const std::string& word) {
        if (order == "revert") machine.reverted.insert(name);
        if (order != "pin" || name != kDefaultTarget) machine.baselines[name] = word;
    };
    if (status)
        for (const json& target : status->at("targets")) {
            const bool external = text_in(target, "state") == "external";
            const std::string name = text_in(target, "name");
            const std::string order = text_in(target, "order");
            if (!external) take(name, order, text_in(target, "baseline"));
            if (name == kDefaultTarget && (external || !order.empty()))
                machine.default_held = text_in(target, "reason");
        }
    OwnedStore store(paths.owned());
    if (status || !store.load()) return;
    for (const Workqueue& target : machine.targets) {
        const Owned* entry = store.find(target.name);
        if (entry == nullptr || entry->inode != target.inode) continue;
        if (target.kind == Kind::default_scope && is_order(entry->holder))
            machine.default_held = held_by_order(*entry).reason;
        if (entry->external) continue;
        const bool ours = entry->main.whose(target.scope.word) == Whose::ours;
        take(target.name, std::string(name_of_order(entry->holder)),
             ours ? entry->main.baseline : target.scope.word);
    }
}

// The targets of MACHINE with their baselines.
std::vector<Workqueue> before_us(const Machine& machine) {
    std::vector<Workqueue> out = machine.targets;
    std::optional<Scope> default_scope;
    for (Workqueue& target : out) {
        const auto found = machine.baselines.find(target.name);
        if (found != machine.baselines.end() && !found->second.empty() && found->second != target.scope.word)
            target.scope = {found->second, scope_named(found->second)};
        if (target.kind != Kind::default_scope) continue;
        default_scope = target.scope.effective;
        if (target.untouchable.empty()) target.untouchable = machine.default_held;
    }
    for (Workqueue& target : out)
        if (!machine.baselines.empty() && target.kind == Kind::unbound && target.scope.word == "default" &&
            default_scope)
            target.scope.effective = default_scope;
    return out;
}

void read_kernel(const Options& options, const std::optional<Paths>& tree, Machine& out) {
    out.kernel = kernel_of(options);
    if (out.kernel.scopes.empty() && (!tree || options.topology != "live"))
        out.kernel.scopes = classic_scopes();
    if (!options.kernel_scopes) return;
    out.hypothetical = true;
    out.kernel.scopes = *options.kernel_scopes;
    out.kernel.cache_shard_size.reset();
    out.kernel.release.clear();
}

// On a hypothetical kernel every workqueue is on that kernel's default.
void put_on_default(Machine& machine) {
    for (Workqueue& target : machine.targets) {
        if (!target.untouchable.empty()) continue;
        const Scope scope = machine.kernel.default_scope();
        target.scope = {target.kind == Kind::default_scope ? std::string(name_of(scope)) : "default", scope};
    }
}

HostFacts read_facts(const Options& options, const Result<Topology>& topology) {
    HostFacts facts;
    if (const auto tree = tree_of(options)) {
        facts = read_host_facts(*tree, topology);
        facts.features = [paths = *tree] { return read_features(paths, probe_kernel(paths)); };
        facts.cpus = [paths = *tree] { return read_boot_cpus(paths); };
    } else if (topology) {
        take_counts(*topology, facts);
    }
    if (options.kernel_scopes) {  // a hypothetical kernel: nothing else is known
        facts.kernel.clear();
        const bool sharded =
            std::ranges::find(*options.kernel_scopes, Scope::cache_shard) != options.kernel_scopes->end();
        facts.features = [sharded] { return KernelFeatures{sharded, {}}; };
    }
    return facts;
}

}  // namespace

std::optional<Paths> tree_of(const Options& options) {
    if (options.topology == "live") return Paths{options.root};
    if (options.topology.starts_with("fsroot:")) return Paths{options.topology.substr(7)};
    return std::nullopt;
}

FactsSource facts_of(const Options& options) {
    return [&] { return read_facts(options, read_topology(options.topology, options.root)); };
}

FactsSource facts_of(const Options& options, const Topology& topology) {
    return [&] { return read_facts(options, topology); };
}

KernelInfo kernel_of(const Options& options) {
    const auto tree = tree_of(options);
    KernelInfo kernel = tree ? probe_kernel(*tree) : KernelInfo{};
    if (options.topology == "live" && !options.kernel_scopes) read_pods(*tree, kernel);
    // Only the pods of cache_shard depend on the size.
    const bool other_size =
        options.shard_size && !options.boot && options.shard_size != kernel.cache_shard_size;
    if (other_size && kernel.pods) kernel.pods->erase(Scope::cache_shard);
    return kernel;
}

unsigned shard_size_for(const Options& options, const KernelInfo& kernel, const Policy& policy) {
    return options.shard_size.value_or(effective_shard_size(kernel, policy));
}

std::vector<std::string> notes_about(const Options& options, const Policy& policy) {
    const auto tree = tree_of(options);
    const auto names = tree ? WorkqueueFs(*tree).names() : Result<std::vector<std::string>>();
    return names && !names->empty() ? wq::notes_about(policy, *names) : std::vector<std::string>{};
}

std::string why_held_back(const Options& options, const Machine& machine) {
    const auto tree = tree_of(options);
    if (!tree || machine.hypothetical) return "";
    if (machine.status.is_object()) {
        const json& daemon = machine.status.at("daemon");
        const json experiments = daemon.value("experiments", json(nullptr));
        return experiments.is_object() ? text_in(experiments, "reason") : "";
    }
    Conditions conditions =
        read_conditions(*tree, machine.kernel, machine.policy, why_switched_off(machine.kernel, *tree));
    conditions.pods_unknown = machine.pods_unknown;
    return why_no_slot(conditions);
}

std::string held_back_remark(const Options& options, const Machine& machine) {
    constexpr std::string_view kObserving = "observing: ";
    const std::string why = why_held_back(options, machine);
    if (why.empty()) return "";
    return why.starts_with(kObserving)
               ? fmt::format("Nothing is written or compared now: {}.", why.substr(kObserving.size()))
               : fmt::format("No comparison begins now: {}.", why);
}

void print_errors(const PolicyErrors& errors) {
    for (const PolicyError& error : errors) say(error.text() + "\n");
}

int complain(const std::string& text) {
    say(fmt::format("wq-tunectl: {}\n", text));
    return kFailure;
}

std::vector<PlanLine> Machine::plan() const {
    const auto before = before_us(*this);
    auto lines =
        make_plan({topology, kernel, policy, before, pods_unknown, shard_size, named_only, reverted});
    for (std::size_t i = 0; i < lines.size(); i++) lines[i].target.scope = targets[i].scope;
    return lines;
}

Result<Topology> topology_of(const Options& options) {
    auto topology = read_topology(options.topology, options.root);
    if (!topology && options.topology.starts_with("synthetic:"))
        throw CLI::ValidationError("--topology", topology.error().text);
    return topology;
}

Result<Machine> read_machine(const Options& options) {
    Machine out;
    const auto tree = tree_of(options);
    auto topology = topology_of(options);
    if (!topology) return tl::unexpected(topology.error());
    out.topology = std::move(*topology);
    for (const std::string& warning : out.topology.warnings) complain(warning);
    auto policy = load_installed_policy(options.root, options.config, facts_of(options, out.topology));
    if (!policy) {
        print_errors(policy.error());
        return fail("the policy is broken, there is no plan");
    }
    out.policy = std::move(*policy);
    read_kernel(options, tree, out);
    if (tree) {
        out.named_only = read_named_only(*tree);
        auto targets = read_targets(WorkqueueFs(*tree), options.topology == "live" && options.root.empty());
        if (!targets) return tl::unexpected(targets.error());
        out.targets = std::move(*targets);
        if (options.topology == "live" && !out.hypothetical) {
            auto status = read_status(*tree);
            read_ownership(*tree, status, out);
            if (status && !options.config && !options.shard_size) out.status = std::move(*status);
        }
    }
    if (out.targets.empty() && options.topology != "live")
        out.targets = {any_workqueue(out.topology, out.kernel)};
    if (out.hypothetical) put_on_default(out);
    KnownCpus known;
    known.see(out.topology);
    out.shard_size = shard_size_for(options, out.kernel, out.policy);
    out.pods_unknown = why_pods_unknown(out.topology, known.cpus(), out.kernel, out.shard_size);
    return out;
}

json kernel_json(const KernelInfo& kernel) {
    json scopes = json::array();
    for (const Scope scope : kernel.scopes) scopes.push_back(name_of(scope));
    return {{"release", word_or_null(kernel.release)},
            {"scopes", std::move(scopes)},
            {"cache_shard_size", or_null(kernel.cache_shard_size)}};
}

}  // namespace wq::ctl
