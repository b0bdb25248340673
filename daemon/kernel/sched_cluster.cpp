// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/sched_cluster.h"

#include <string>

#include "base/file.h"
#include "kernel/btf_types.h"

namespace wq {
namespace {

constexpr std::size_t kMostConfig = std::size_t{2} << 20;

// Empty: no such file, or it is no configuration.
std::optional<bool> in_config(const std::string& path) {
    const auto text = read_file(path, kMostConfig);
    if (!text || text->find("CONFIG_SMP=") == std::string::npos) return std::nullopt;
    return text->starts_with("CONFIG_SCHED_CLUSTER=y\n") ||
           text->find("\nCONFIG_SCHED_CLUSTER=y\n") != std::string::npos;
}

}  // namespace

std::optional<bool> has_sched_cluster(const Paths& paths) {
    const auto line = read_file(paths.osrelease());
    const std::string release = line ? line->substr(0, line->find('\n')) : "";
    if (!release.empty() && release.find('/') == std::string::npos)
        for (const std::string& path : paths.kernel_configs(release))
            if (const auto found = in_config(path)) return found;
    return types_have_clusters(paths.btf());
}

}  // namespace wq
