// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_command.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "ctl/command.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/json_values.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

// DIFF: the file to compare with; "": none.
int dump(const std::string& diff, bool json) {
    const auto all = read_kernel_dump();
    if (!all) return complain(all.error().text + "; `wq-tunectl topology` needs no BPF");
    const KernelInfo kernel = probe_kernel(Paths{});
    if (diff.empty()) {
        fmt::print("{}", json ? json_text(kernel_dump_json(*all, kernel)) + "\n"
                              : kernel_dump_text(*all, kernel, terminal_columns(), wants_colour()));
        return kOk;
    }
    const auto before = read_dump_file(diff);
    if (!before) return complain(before.error().text);
    const auto differs = dump_diff(*before, kernel_dump_json(*all, kernel));
    if (!differs) return complain(differs.error().in(diff).text);
    fmt::print("{}", json ? json_text(*differs) + "\n"
                          : dump_diff_text(*differs, terminal_columns(), wants_colour()));
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
    json["rescuer"] = nullptr;
    if (const auto& rescuer = wq.rescuer)
        json["rescuer"] = {{"name", rescuer->name}, {"pid", rescuer->pid}, {"cpus", rescuer->cpus.list()}};
    return json;
}

}  // namespace

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
    const auto diff = std::make_shared<std::string>();
    const auto json = std::make_shared<bool>(false);
    add_word(command, "--diff", *diff, word::kFile,
             "What differs from this output of `dump --json`, as of another kernel");
    command.add_flag("--json", *json, kJsonHelp);
    return [diff, json, &invocation] {
        if (!invocation.root.empty()) throw CLI::ValidationError("dump reads the running kernel: no --root");
        return dump(*diff, *json);
    };
}

}  // namespace wq::ctl
