// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/sched_levels.h"

#include <string>

#include "base/file.h"
#include "kernel/btf_types.h"

namespace wq {
namespace {

constexpr std::size_t kMostConfig = std::size_t{2} << 20;

bool is_set(const std::string& config, const std::string& option) {
    const std::string line = option + "=y\n";
    return config.starts_with(line) || config.find("\n" + line) != std::string::npos;
}

// Empty: no such file, or not a kernel configuration.
std::optional<SchedLevels> in_config(const std::string& path) {
    const auto text = read_file(path, kMostConfig);
    if (!text || text->find("CONFIG_SMP=") == std::string::npos) return std::nullopt;
    return SchedLevels{is_set(*text, "CONFIG_SCHED_CLUSTER"), is_set(*text, "CONFIG_SCHED_MC")};
}

SchedLevels read(const Paths& paths) {
    const std::string release = read_first_line(paths.osrelease());
    if (!release.empty() && release.find('/') == std::string::npos)
        for (const std::string& path : paths.kernel_configs(release))
            if (const auto found = in_config(path)) return *found;
    return levels_in_types(paths.btf());
}

}  // namespace

SchedLevels read_sched_levels(const Paths& paths) {
    if (!paths.root.empty()) return read(paths);
    static SchedLevels running;
    if (running == SchedLevels{}) running = read(paths);
    return running;
}

}  // namespace wq
