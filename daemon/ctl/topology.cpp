// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ctl/machine.h"
#include "ctl/terminal.h"
#include "kernel/hwloc_topology.h"
#include "kernel/probe.h"
#include "plan/pods.h"
#include "policy/installed.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

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

// "1 CPU", "2 CPUs"
std::string counted(std::size_t n, std::string_view noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// Neighbouring LLCs that differ in their CPU numbers only: one line of the table.
struct Group {
    std::size_t cores = 0;
    std::vector<std::size_t> shard_cores;
    std::size_t llcs = 0;
    CpuSet nodes;  // node numbers, printed as lists are
    std::vector<CpuSet> shards;
};

std::vector<Group> groups_of(const Topology& topology, unsigned shard_size) {
    const CoreIndex index(topology);
    std::vector<Group> groups;
    for (const auto& llc : topology.llcs) {
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

// "3 of 6-7": shards of an LLC and the cores of each.
std::string describe(const std::vector<std::size_t>& sizes) {
    if (sizes.empty()) return "-";
    if (sizes.front() == sizes.back()) return fmt::format("{} of {}", sizes.size(), sizes.front());
    return fmt::format("{} of {}-{}", sizes.size(), sizes.back(), sizes.front());
}

// WORDS in lines of at most COLUMNS, each indented; at most MOST lines. A CPU list that is too long for a
// line is broken after a comma.
std::string wrapped(const std::vector<std::string>& words, std::size_t columns, std::size_t most) {
    static constexpr std::string_view kIndent = "    ";
    const std::size_t room = std::max<std::size_t>(columns, 20) - kIndent.size();
    std::vector<std::string> lines(1);
    const auto append = [&](std::string_view piece, std::string_view gap) {
        std::string& line = lines.back();
        if (!line.empty() && line.size() + gap.size() + piece.size() > room)
            lines.emplace_back(piece);
        else
            line.append(line.empty() ? "" : gap).append(piece);
    };
    for (std::string_view word : words) {
        std::string_view gap = "  ";
        while (word.size() > room) {
            const auto comma = word.rfind(',', room - 1);
            if (comma == std::string_view::npos) break;
            append(word.substr(0, comma + 1), gap);
            word.remove_prefix(comma + 1);
            gap = "";
        }
        append(word, gap);
        if (lines.size() > most) break;
    }
    std::string text;
    for (std::size_t i = 0; i < std::min(lines.size(), most); i++)
        text += fmt::format("{}{}\n", kIndent, lines[i]);
    if (lines.size() > most) text += fmt::format("{}... (--json has all)\n", kIndent);
    return text;
}

}  // namespace

Json topology_json(const Topology& topology, unsigned shard_size) {
    const CoreIndex index(topology);
    Json llcs = Json::array();
    for (const auto& llc : topology.llcs)
        llcs.push_back({{"cpus", llc.cpus.list()},
                        {"cores", index.cores_in(llc.cpus)},
                        {"numa_node", llc.numa_node ? Json(*llc.numa_node) : Json(nullptr)},
                        {"shards", lists_of(shards_of(llc.cpus, index, shard_size))}});
    Json json = {{"source", topology.source},      {"cpus", topology.online.count()},
                 {"cores", topology.cores.size()}, {"threads_per_core", threads_per_core(topology)},
                 {"shard_size", shard_size},       {"llcs", std::move(llcs)}};
    if (!topology.isolated.empty()) json["isolated"] = topology.isolated.list();
    if (!topology.warnings.empty()) json["warnings"] = topology.warnings;
    return json;
}

std::string topology_table(const Topology& topology, unsigned shard_size, std::size_t columns) {
    std::string text = wrapped({topology.source}, columns, 4).substr(4);
    text +=
        fmt::format("{}, {}, {} per core\n", counted(topology.online.count(), "CPU"),
                    counted(topology.cores.size(), "core"), counted(threads_per_core(topology), "thread"));
    text += fmt::format("shard size: {}\n", counted(shard_size, "core"));
    if (!topology.isolated.empty())
        text += "isolated, in no LLC:\n" + wrapped({topology.isolated.list()}, columns, 4);
    text += fmt::format("\n{:>5} {:>6}  {:<15} {}\n", "LLCS", "CORES", "SHARDS OF EACH", "NODES");
    for (const auto& group : groups_of(topology, shard_size)) {
        text += fmt::format("{:>5} {:>6}  {:<15} {}\n", group.llcs, group.cores, describe(group.shard_cores),
                            group.nodes.empty() ? "-" : group.nodes.list());
        text += wrapped(lists_of(group.shards), columns, 4);
    }
    return text;
}

unsigned shard_size_for(const Options& options) {
    if (options.shard_size) return *options.shard_size;
    if (options.topology == "live")
        if (const auto size = probe_kernel({options.root}).cache_shard_size) return *size;
    // A broken policy is `check`'s affair; here it has no size to say.
    return load_installed_policy(options.root, options.config).value_or(Policy{}).shard_size;
}

int topology(const Options& options) {
    const auto topology = read_topology(options.topology, options.root);
    if (!topology) return complain(topology.error().text);
    for (const auto& warning : topology->warnings) complain(warning);
    const unsigned size = shard_size_for(options);
    if (options.json)  // whatever bytes a file's name has
        fmt::print("{}\n",
                   topology_json(*topology, size).dump(-1, ' ', false, Json::error_handler_t::replace));
    else
        fmt::print("{}", topology_table(*topology, size, terminal_columns()));
    return kOk;
}

}  // namespace wq::ctl
