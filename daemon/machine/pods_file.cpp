// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/pods_file.h"

#include <fmt/format.h>
#include <cerrno>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace wq {
namespace {

constexpr std::size_t kMaxPods = 16U << 20;  // bytes; 65536 CPUs, each a pod in six scopes, need half
constexpr std::string_view kWhy = "why ";

// TEXT of PATH: "why ERROR", or "SCOPE NODE CPUS" for each pod, and a line "end".
Result<KernelPods> pods_from(const std::string& text, const std::string& path) {
    if (text.starts_with(kWhy)) return fail(text.substr(kWhy.size(), text.find('\n') - kWhy.size()));
    KernelPods out;
    std::istringstream in(text);
    int node = 0;
    for (std::string word, cpus; in >> word && word != "end";) {
        in >> node >> cpus;
        const auto scope = scope_named(word);
        auto set = CpuSet::parse_list(cpus);
        if (!in || !scope || !set) return fail(path + ": not a list of pods", EBADMSG);
        out[*scope].push_back({std::move(*set), node});
    }
    if (!text.ends_with("\nend\n")) return fail(path + ": cut off", EBADMSG);
    return out;
}

}  // namespace

std::string pods_path(const Paths& paths) {
    return paths.run() + "/pods";
}

Status leave_pods(const std::string& path, const Result<KernelPods>& pods) {
    if (const auto there = find_pods(path); !pods && there && *there) return {};
    if (!pods) return replace_file(path, std::string(kWhy) + pods.error().text + "\n");
    std::string out;
    for (const auto& [scope, all] : *pods)
        for (const KernelPod& pod : all)
            out += fmt::format("{} {} {}\n", name_of(scope), pod.node, pod.cpus.list());
    return replace_file(path, out + "end\n");
}

std::optional<Result<KernelPods>> find_pods(const std::string& path) {
    auto text = read_if_there(path, kMaxPods);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return std::nullopt;
    return pods_from(**text, path);
}

}  // namespace wq
