// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/host_status.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/pods.h"

namespace wq {
namespace {

using nlohmann::json;

json bool_or_null(std::optional<bool> known) {
    return known ? json(*known) : json(nullptr);
}

json work_json(const WatchedWork& work) {
    return {{"workqueue", work.workqueue.empty() ? json(nullptr) : json(work.workqueue)},
            {"kind", work.workqueue.empty() ? json(nullptr) : json(work.per_cpu ? "per-cpu" : "unbound")},
            {"function", work.function},
            {"items", work.items}};
}

}  // namespace

json isolation_json(const Isolation& isolation) {
    json partitions = json::array();
    for (const Partition& p : isolation.partitions)
        partitions.push_back({{"cgroup", p.cgroup.empty() ? json(nullptr) : json(p.cgroup)},
                              {"cpus", p.cpus.list()},
                              {"type", p.type}});
    return {{"isolcpus", isolation.isolcpus.list()},
            {"nohz_full", isolation.nohz_full.list()},
            {"partitions", std::move(partitions)},
            {"partitions_complete", isolation.complete}};
}

json counted_json(const Watched& watched) {
    json work = json::array();
    for (const WatchedWork& each : watched.work) work.push_back(work_json(each));
    return {{"work", std::move(work)},
            {"work_lost", watched.lost},
            {"work_seconds", std::round(watched.seconds * 10) / 10}};
}

json features_json(const KernelInfo& kernel, const KernelFeatures& features, bool cut_short) {
    json named = json::object();
    for (const NamedFeature& feature : kFeatures)
        named[std::string(feature.name)] = bool_or_null(features.*feature.value);
    if (cut_short) named["exact_parsing"] = false;
    return {{"release", kernel.release.empty() ? json(nullptr) : json(kernel.release)},
            {"features", std::move(named)}};
}

json pods_json(const KernelInfo& kernel, const Topology& topology) {
    json differ = json::object();
    for (const Scope scope : unlike_model(kernel, topology)) {
        json& lists = differ[std::string(name_of(scope))] = json::array();
        for (const CpuSet& pod : pods_in(kernel, scope, topology, 1)) lists.push_back(pod.list());
    }
    return {{"source", kernel.pods ? "kernel" : "model"},
            {"why", kernel.pods_unread.empty() ? json(nullptr) : json(kernel.pods_unread)},
            {"differ", std::move(differ)}};
}

}  // namespace wq
