// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/render/page.h"
#include "ctl/topology_source.h"
#include "evidence/json_values.h"
#include "plan/pods.h"
#include "policy/load_policy.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> lists_of(const std::vector<CpuSet>& sets) {
    std::vector<std::string> lists;
    for (const auto& set : sets) lists.push_back(set.list());
    return lists;
}

std::size_t threads_per_core(const Topology& topology) {
    std::size_t most = 0;
    for (const auto& core : topology.cores) most = std::max(most, core.count());
    return most;
}

// Adjacent LLCs that differ only in their CPU numbers. They share one line of the table.
struct Group {
    std::size_t cores = 0;
    std::vector<std::size_t> shard_cores;
    std::size_t llcs = 0;
    CpuSet nodes;  // node numbers, printed as a list
    std::vector<CpuSet> shards;
};

std::vector<Group> groups_of(const Topology& topology, const KernelInfo& kernel, unsigned shard_size) {
    const CoreIndex index(topology);
    std::vector<Group> groups;
    for (const auto& llc : llcs_in(kernel, topology)) {
        auto shards = shards_of(llc.cpus, index, shard_size);
        std::vector<std::size_t> sizes;
        for (const auto& shard : shards) sizes.push_back(index.cores_in(shard));
        if (groups.empty() || groups.back().shard_cores != sizes)
            groups.push_back({index.cores_in(llc.cpus), sizes, 0, {}, {}});
        auto& group = groups.back();
        group.llcs++;
        if (llc.numa_node) group.nodes.add(*llc.numa_node);
        std::ranges::move(shards, std::back_inserter(group.shards));
    }
    return groups;
}

// Returns "3 x 6-7 cores": the number of shards of an LLC, and the cores per shard.
std::string describe(const std::vector<std::size_t>& sizes) {
    if (sizes.empty()) return "-";
    if (sizes.front() == sizes.back())
        return fmt::format("{} x {}", sizes.size(), plural(sizes.front(), "core"));
    return fmt::format("{} x {}-{} cores", sizes.size(), sizes.back(), sizes.front());
}

// LISTS of CPUs, as many as people read.
std::string some_lists(const std::vector<CpuSet>& lists) {
    constexpr std::size_t kMost = 32;
    const auto end = lists.begin() + static_cast<std::ptrdiff_t>(std::min(lists.size(), kMost));
    const auto text = fmt::format("{}", fmt::join(lists_of({lists.begin(), end}), "  "));
    return lists.size() > kMost ? text + "  ... (--json has all)" : text;
}

// Empty if the policy named by the user has errors, which are then printed. Errors of the installed policy
// are left to `check`; its shard size is then ignored.
std::optional<unsigned> shard_size(const Options& options, const Topology& topology,
                                   const KernelInfo& kernel) {
    const auto policy = load_installed_policy(options.root, options.config, facts_of(options, topology));
    if (policy) return shard_size_for(options, kernel, *policy);
    if (options.config) {
        print_errors(policy.error());
        return std::nullopt;
    }
    const Policy built_in;
    if (!options.shard_size && !kernel.cache_shard_size)
        complain(
            fmt::format("the policy is broken, `wq-tunectl check` says how; shards of {} cores are shown",
                        built_in.shard_size));
    return shard_size_for(options, kernel, built_in);
}

}  // namespace

std::string why_not_its_own(const KernelInfo& kernel) {
    return kernel.pods_unread.empty() ? "" : "Computed from sysfs; " + kernel.pods_unread;
}

Json topology_json(const Topology& topology, const KernelInfo& kernel, unsigned shard_size) {
    const CoreIndex index(topology);
    Json llcs = Json::array();
    for (const auto& llc : llcs_in(kernel, topology))
        llcs.push_back({{"cpus", llc.cpus.list()},
                        {"cores", index.cores_in(llc.cpus)},
                        {"numa_node", or_null(llc.numa_node)},
                        {"shards", lists_of(shards_of(llc.cpus, index, shard_size))}});
    Json json = {{"source", topology.source},      {"cpus", topology.online.count()},
                 {"cores", topology.cores.size()}, {"threads_per_core", threads_per_core(topology)},
                 {"shard_size", shard_size},       {"llcs", std::move(llcs)}};
    if (kernel.pods || !kernel.pods_unread.empty()) json["pods"] = pods_json(kernel, topology);
    if (!topology.llc_unknown.empty() && !kernel.pods) json["llcs_unknown"] = topology.llc_unknown;
    if (!topology.isolated.empty()) json["isolated"] = topology.isolated.list();
    if (!topology.warnings.empty()) json["warnings"] = topology.warnings;
    return json;
}

Shown topology_shown(const Topology& topology, const KernelInfo& kernel, unsigned shard_size) {
    Shown out;
    out.add(topology.source == "live" ? "this machine, by /sys" : topology.source);
    std::string counts =
        fmt::format("{}, {}", plural(topology.online.count(), "CPU"), plural(topology.cores.size(), "core"));
    // Omit this for hybrids, whose cores differ.
    if (topology.cores.size() * threads_per_core(topology) == topology.online.count())
        counts += fmt::format(", {} per core", plural(threads_per_core(topology), "thread"));
    out.add(counts);
    out.add(fmt::format("shard size: {}", plural(shard_size, "core")));
    if (!topology.isolated.empty()) out.add("isolated, in no LLC: " + topology.isolated.list());
    out.add("");
    Table table({"LLCS", "CORES", "SHARDS OF EACH", "NODES", "CPUS OF THE SHARDS"});
    for (const auto& group : groups_of(topology, kernel, shard_size))
        table.add({std::to_string(group.llcs), std::to_string(group.cores), describe(group.shard_cores),
                   group.nodes.empty() ? "-" : group.nodes.list(), some_lists(group.shards)});
    out.add(std::move(table));
    for (const Scope scope : unlike_model(kernel, topology)) {
        const auto pods = pods_in(kernel, scope, topology, 1);
        out.add("");
        out.add(fmt::format(
            "The kernel's pods of {} differ from those computed from sysfs. The kernel has {}: {}",
            name_of(scope), plural(pods.size(), "pod"), some_lists(pods)));
    }
    const std::string in_doubt = topology.llc_unknown.empty() || kernel.pods
                                     ? ""
                                     : "The kernel may see other LLCs: " + topology.llc_unknown;
    for (const std::string& why : {in_doubt, why_not_its_own(kernel)}) {
        if (why.empty()) continue;
        out.add("");
        out.add(why);
    }
    return out;
}

int topology(const Options& options) {
    const auto topology = topology_of(options);
    if (!topology) return complain(topology.error().text);
    for (const auto& warning : topology->warnings) complain(warning);
    if (!options.save.empty())
        if (auto saved = save_tree(*tree_of(options), options.save); !saved)
            return complain(saved.error().text);
    const KernelInfo kernel = kernel_of(options);
    const auto size = shard_size(options, *topology, kernel);
    if (!size) return kFailure;
    if (options.json)
        fmt::print("{}\n", json_text(topology_json(*topology, kernel, *size)));
    else
        fmt::print("{}", topology_shown(*topology, kernel, *size).text());
    return kOk;
}

}  // namespace wq::ctl
