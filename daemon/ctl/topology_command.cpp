// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_source.h"
#include "plan/pods.h"
#include "policy/load_policy.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNodesAt = 32;  // where the table's last column starts

std::vector<std::string> lists_of(const std::vector<CpuSet>& sets) {
    std::vector<std::string> lists;
    lists.reserve(sets.size());
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
        sizes.reserve(shards.size());
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

// Wraps WORDS into at most MOST indented lines of at most COLUMNS.
std::string wrapped_lists(const std::vector<std::string>& words, std::size_t columns, std::size_t most) {
    static constexpr std::string_view kIndent = "    ";
    const auto lines = wrap_lists(words, std::max<std::size_t>(columns, 20) - kIndent.size());
    std::string text;
    for (std::size_t i = 0; i < std::min(lines.size(), most); i++)
        text += fmt::format("{}{}\n", kIndent, lines[i]);
    if (lines.size() > most) text += fmt::format("{}... (--json has all)\n", kIndent);
    return text;
}

std::string kernels_own_text(const Topology& topology, const KernelInfo& kernel, std::size_t columns) {
    std::string text;
    for (const OwnPods& own : kernels_own(topology, kernel))
        text += "\n" + wrapped(own.text, columns) + wrapped_lists(own.cpus, columns, 4);
    for (const std::string& why : {why_in_doubt(topology, kernel), why_not_its_own(kernel)}) {
        if (why.empty()) continue;
        if (text.empty()) text = "\n";
        text += wrapped(why, columns);
    }
    return text;
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

std::vector<OwnPods> kernels_own(const Topology& topology, const KernelInfo& kernel) {
    std::vector<OwnPods> out;
    for (const Scope scope : unlike_model(kernel, topology)) {
        const auto pods = pods_in(kernel, scope, topology, 1);
        out.push_back(
            {fmt::format("The kernel's pods of {} differ from those computed from sysfs. The kernel has {}:",
                         name_of(scope), plural(pods.size(), "pod")),
             lists_of(pods)});
    }
    return out;
}

std::string why_not_its_own(const KernelInfo& kernel) {
    if (kernel.pods_unread.empty()) return "";
    return "Computed from sysfs; " + kernel.pods_unread;
}

std::string why_in_doubt(const Topology& topology, const KernelInfo& kernel) {
    if (topology.llc_unknown.empty() || kernel.pods) return "";
    return "The kernel may see other LLCs: " + topology.llc_unknown;
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

std::string topology_table(const Topology& topology, const KernelInfo& kernel, unsigned shard_size,
                           std::size_t columns) {
    const std::string source = topology.source == "live" ? "this machine, by /sys" : topology.source;
    std::string text = wrapped(source, columns);
    std::string counts =
        fmt::format("{}, {}", plural(topology.online.count(), "CPU"), plural(topology.cores.size(), "core"));
    // Omit this for hybrids, whose cores differ.
    if (topology.cores.size() * threads_per_core(topology) == topology.online.count())
        counts += fmt::format(", {} per core", plural(threads_per_core(topology), "thread"));
    text += wrapped(counts, columns);
    text += fmt::format("shard size: {}\n", plural(shard_size, "core"));
    if (!topology.isolated.empty())
        text += "isolated, in no LLC:\n" + wrapped_lists({topology.isolated.list()}, columns, 4);
    text += fmt::format("\n{:>5} {:>6}  {:<17} {}\n", "LLCS", "CORES", "SHARDS OF EACH", "NODES");
    for (const auto& group : groups_of(topology, kernel, shard_size)) {
        const auto nodes = wrap_lists({group.nodes.empty() ? "-" : group.nodes.list()},
                                      std::max<std::size_t>(columns, kNodesAt + 8) - kNodesAt);
        text += fmt::format("{:>5} {:>6}  {:<17} {}\n", group.llcs, group.cores, describe(group.shard_cores),
                            nodes.front());
        for (std::size_t i = 1; i < nodes.size(); i++)
            text += fmt::format("{:{}}{}\n", "", kNodesAt, nodes[i]);
        text += wrapped_lists(lists_of(group.shards), columns, 4);
    }
    return text + kernels_own_text(topology, kernel, columns);
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
        fmt::print("{}", topology_table(*topology, kernel, *size, terminal_columns()));
    return kOk;
}

}  // namespace wq::ctl
