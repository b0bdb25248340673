// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/dump/dump_command.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"

namespace wq::ctl {
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
