// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_command.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <set>

#include "bpf/bpf_dump.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/observe/dump_diff.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "machine/kernel_info.h"

namespace wq::ctl {
namespace {

struct DumpOptions {
    std::vector<std::string> names;
    std::string diff;  // the file to compare with; "": none
    bool json = false;
};

void print(const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json_text(json));
}

int print_diff(const DumpOptions& options, const nlohmann::ordered_json& now) {
    const auto before = read_dump_file(options.diff, options.names);
    if (!before) return complain(before.error().text);
    const auto diff = diff_dumps(*before, now);
    if (!diff) return complain(options.diff + ": " + diff.error().text);
    if (options.json)
        print(dump_diff_json(*diff));
    else
        fmt::print("{}", dump_diff_text(*diff, terminal_columns(), wants_colour()));
    return kOk;
}

// With --diff, the names need not exist now: the other dump may have them.
Result<KernelDump> wanted(KernelDump all, const DumpOptions& options) {
    if (options.diff.empty()) return dump_of(std::move(all), options.names);
    if (!options.names.empty())
        std::erase_if(all.workqueues, [&](const DumpedWorkqueue& wq) {
            return std::ranges::find(options.names, wq.name) == options.names.end();
        });
    return all;
}

int dump(const DumpOptions& options) {
    auto all = read_kernel_dump();
    if (!all) return complain(all.error().text + "; `wq-tunectl topology` needs no BPF");
    const auto some = wanted(std::move(*all), options);
    if (!some) return complain(some.error().text);
    const KernelInfo kernel = probe_kernel(Paths{});
    if (!options.diff.empty()) return print_diff(options, kernel_dump_json(*some, kernel));
    if (options.json)
        print(kernel_dump_json(*some, kernel));
    else
        fmt::print("{}", kernel_dump_text(*some, kernel, terminal_columns(), wants_colour()));
    return kOk;
}

}  // namespace

Result<KernelDump> dump_of(KernelDump dump, const std::vector<std::string>& names) {
    if (names.empty()) return dump;
    for (const auto& name : names)
        if (std::ranges::find(dump.workqueues, name, &DumpedWorkqueue::name) == dump.workqueues.end())
            return fail("there is no workqueue '" + name + "'", ENOENT);
    std::erase_if(dump.workqueues, [&](const DumpedWorkqueue& wq) {
        return std::ranges::find(names, wq.name) == names.end();
    });
    std::set<int> used;
    for (const auto& wq : dump.workqueues) {
        for (const auto& [cpu, pool] : wq.pools) used.insert(pool);
        if (wq.default_pool) used.insert(*wq.default_pool);
    }
    std::erase_if(dump.pools, [&](const DumpedPool& pool) { return !used.contains(pool.id); });
    return dump;
}

CommandRun set_up_dump(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<DumpOptions>();
    command.add_option("WQ", options->names, "Only these workqueues, and the pools that they use")
        ->type_name(word::kWorkqueue);
    command
        .add_option("--diff", options->diff,
                    "What differs from this output of `dump --json`, as of another kernel")
        ->type_name(word::kFile)
        ->check(not_empty);
    command.add_flag("--json", options->json, kJsonHelp);
    return [options, &invocation] {
        if (!invocation.root.empty()) throw CLI::ValidationError("dump reads the running kernel: no --root");
        return dump(*options);
    };
}

namespace {

using Json = nlohmann::ordered_json;

Json list_or_null(const std::optional<CpuSet>& cpus) {
    return cpus ? Json(cpus->list()) : Json(nullptr);
}
Json node_or_null(int node) {
    return node >= 0 ? Json(node) : Json(nullptr);
}

Json scope_json(Scope scope, const std::vector<KernelPod>& pods) {
    Json list = Json::array();
    std::map<unsigned, std::size_t> pod_of_cpu;
    for (const auto& pod : pods) {
        for (const unsigned cpu : pod.cpus.cpus()) pod_of_cpu[cpu] = list.size();
        list.push_back({{"cpus", pod.cpus.list()}, {"node", node_or_null(pod.node)}});
    }
    Json cpu_pod = Json::object();
    for (const auto& [cpu, pod] : pod_of_cpu) cpu_pod[std::to_string(cpu)] = pod;
    return {{"scope", name_of(scope)}, {"nr_pods", pods.size()}, {"pods", list}, {"cpu_pod", cpu_pod}};
}

Json pool_json(const DumpedPool& pool) {
    return {{"id", pool.id},
            {"ref", pool.refs},
            {"nice", pool.nice},
            {"idle", pool.idle},
            {"workers", pool.workers},
            {"cpu", or_null(pool.cpu)},
            {"node", node_or_null(pool.node)},
            {"cpus", pool.cpus.list()},
            {"pod_cpus", pool.pod_cpus.list()},
            {"strict", pool.strict},
            {"bh", pool.bh}};
}

Json workqueue_json(const DumpedWorkqueue& wq) {
    Json pools = Json::object();
    for (const auto& [cpu, pool] : wq.pools) pools[std::to_string(cpu)] = pool;
    Json nodes = Json::array();
    for (const auto& node : wq.nodes)
        nodes.push_back({{"node", node_or_null(node.node)}, {"active", node.active}, {"max", node.max}});
    Json json = {{"name", wq.name}, {"kind", wq.kind}, {"flags", wq.flags}};
    if (wq.attrs) {
        json["scope"] = wq.attrs->scope;
        json["effective"] = name_or_null(wq.attrs->effective);
        json["strict"] = wq.attrs->strict;
        json["nice"] = wq.attrs->nice;
        json["cpus"] = wq.attrs->cpus.list();
    }
    json["pools"] = std::move(pools);
    json["default_pool"] = or_null(wq.default_pool);
    json["max_active"] = wq.max_active;
    json["nodes"] = std::move(nodes);
    json["rescuer"] = nullptr;
    if (wq.rescuer)
        json["rescuer"] = {
            {"name", wq.rescuer->name}, {"pid", wq.rescuer->pid}, {"cpus", wq.rescuer->cpus.list()}};
    return json;
}

}  // namespace

Json kernel_dump_json(const KernelDump& dump, const KernelInfo& kernel) {
    Json scopes = Json::array();
    for (const auto& [scope, pods] : dump.scopes) scopes.push_back(scope_json(scope, pods));
    Json pools = Json::array();
    for (const auto& pool : dump.pools) pools.push_back(pool_json(pool));
    Json workqueues = Json::array();
    for (const auto& wq : dump.workqueues) workqueues.push_back(workqueue_json(wq));
    return {{"kernel", kernel_json(kernel)},
            {"default_scope", name_or_null(dump.default_scope)},
            {"masks",
             {{"unbound", dump.unbound.list()},
              {"requested", list_or_null(dump.requested)},
              {"isolated", list_or_null(dump.isolated)}}},
            {"scopes", scopes},
            {"pools", pools},
            {"workqueues", workqueues}};
}

}  // namespace wq::ctl
