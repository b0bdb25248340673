// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/pods_file.h"

#include <fmt/format.h>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPods = 16U << 20;  // bytes; 65536 CPUs, each a pod in six scopes, need half

KernelPod pod_from(const json& j) {
    auto cpus = CpuSet::parse_list(j.at("cpus").get<std::string>());
    if (!cpus) throw json::other_error::create(501, cpus.error().text, nullptr);
    return {std::move(*cpus), j.at("node").get<int>()};
}

Result<KernelPods> pods_from(const json& j) {
    if (j.contains("why")) return fail(j.at("why").get<std::string>());
    KernelPods out;
    for (const auto& [name, pods] : j.at("pods").items()) {
        const auto scopes = parse_scopes(name);
        if (!scopes || scopes->size() != 1) return fail(name + " is not a scope");
        for (const json& pod : pods) out[scopes->front()].push_back(pod_from(pod));
    }
    return out;
}

}  // namespace

std::string pods_path(const Paths& paths) {
    return fmt::format("{}/pods.json", paths.run());
}

Status leave_pods(const std::string& path, const Result<KernelPods>& pods) {
    if (!pods) {
        if (const auto there = find_pods(path); there && *there) return {};
    }
    json out = json::object();
    if (!pods) out["why"] = pods.error().text;
    if (pods) {
        for (const auto& [scope, all] : *pods)
            for (const KernelPod& pod : all)
                out["pods"][std::string(name_of(scope))].push_back(
                    {{"cpus", pod.cpus.list()}, {"node", pod.node}});
    }
    return replace_file(path, out.dump() + "\n");
}

std::optional<Result<KernelPods>> find_pods(const std::string& path) {
    auto text = read_if_there(path, kMaxPods);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    try {
        return pods_from(json::parse(**text));
    } catch (const json::exception& error) {
        return fail(path + ": " + json_error_text(error.what()));
    }
}

CpuSet read_first_cpus(const Paths& paths) {
    return CpuSet::parse_list(read_first_line(paths.first_cpus())).value_or(CpuSet{});
}

Status keep_first_cpus(const Paths& paths, const Topology& now) {
    if (!now.warnings.empty() || exists(paths.first_cpus())) return {};
    return replace_state_file(paths.first_cpus(), (now.online - now.isolated).list() + "\n");
}

}  // namespace wq
