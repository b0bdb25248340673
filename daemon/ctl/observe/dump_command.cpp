// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include "bpf/bpf_dump.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "machine/kernel_info.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

struct DumpOptions {
    std::vector<std::string> names;
    std::string diff;  // the file to compare with; "": none
    bool json = false;
};

void keep_named(KernelDump& dump, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::erase_if(dump.workqueues, [&](const DumpedWorkqueue& wq) {
        return std::ranges::find(names, wq.name) == names.end();
    });
}

// What differs from the dump in the file. Its names need not exist now: the other dump may have them.
Result<Json> diff_of(KernelDump all, const DumpOptions& options) {
    const auto before = read_dump_file(options.diff, options.names);
    if (!before) return before;
    keep_named(all, options.names);
    auto diff = dump_diff(*before, kernel_dump_json(all, probe_kernel(Paths{})));
    if (!diff) return tl::unexpected(diff.error().in(options.diff));
    return diff;
}

int dump(const DumpOptions& options) {
    auto all = read_kernel_dump();
    if (!all) return complain(all.error().text + "; `wq-tunectl topology` needs no BPF");
    if (!options.diff.empty()) {
        const auto diff = diff_of(std::move(*all), options);
        if (!diff) return complain(diff.error().text);
        fmt::print("{}", options.json ? json_text(*diff) + "\n"
                                      : dump_diff_text(*diff, terminal_columns(), wants_colour()));
        return kOk;
    }
    const auto some = dump_of(std::move(*all), options.names);
    if (!some) return complain(some.error().text);
    const KernelInfo kernel = probe_kernel(Paths{});
    fmt::print("{}", options.json ? json_text(kernel_dump_json(*some, kernel)) + "\n"
                                  : kernel_dump_text(*some, kernel, terminal_columns(), wants_colour()));
    return kOk;
}

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
    Json json = {{"name", wq.name}, {"kind", wq.kind}, {"flags", wq.flags}};
    if (wq.attrs)
        json.update({{"scope", wq.attrs->scope},
                     {"effective", name_or_null(wq.attrs->effective)},
                     {"strict", wq.attrs->strict},
                     {"nice", wq.attrs->nice},
                     {"cpus", wq.attrs->cpus.list()}});
    json["pools"] = Json::object();
    for (const auto& [cpu, pool] : wq.pools) json["pools"][std::to_string(cpu)] = pool;
    json["default_pool"] = or_null(wq.default_pool);
    json["max_active"] = wq.max_active;
    json["nodes"] = Json::array();
    for (const auto& node : wq.nodes)
        json["nodes"].push_back(
            {{"node", node_or_null(node.node)}, {"active", node.active}, {"max", node.max}});
    json["rescuer"] = nullptr;
    if (const auto& rescuer = wq.rescuer)
        json["rescuer"] = {{"name", rescuer->name}, {"pid", rescuer->pid}, {"cpus", rescuer->cpus.list()}};
    return json;
}

}  // namespace

Result<KernelDump> dump_of(KernelDump dump, const std::vector<std::string>& names) {
    if (names.empty()) return dump;
    for (const auto& name : names)
        if (std::ranges::find(dump.workqueues, name, &DumpedWorkqueue::name) == dump.workqueues.end())
            return fail("there is no workqueue '" + name + "'", ENOENT);
    keep_named(dump, names);
    std::set<int> used;
    for (const auto& wq : dump.workqueues) {
        for (const auto& [cpu, pool] : wq.pools) used.insert(pool);
        if (wq.default_pool) used.insert(*wq.default_pool);
    }
    std::erase_if(dump.pools, [&](const DumpedPool& pool) { return !used.contains(pool.id); });
    return dump;
}

Json kernel_dump_json(const KernelDump& dump, const KernelInfo& kernel) {
    Json scopes = Json::array(), pools = Json::array(), workqueues = Json::array();
    for (const auto& [scope, pods] : dump.scopes) scopes.push_back(scope_json(scope, pods));
    for (const auto& pool : dump.pools) pools.push_back(pool_json(pool));
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

}  // namespace wq::ctl
