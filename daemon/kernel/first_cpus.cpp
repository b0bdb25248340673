// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/first_cpus.h"

#include "base/file.h"

namespace wq {

CpuSet read_first_cpus(const Paths& paths) {
    return CpuSet::parse_list(read_first_line(paths.first_cpus())).value_or(CpuSet{});
}

Status keep_first_cpus(const Paths& paths, const Topology& now) {
    if (!now.warnings.empty() || exists(paths.first_cpus())) return {};
    return replace_state_file(paths.first_cpus(), (now.online - now.isolated).list() + "\n");
}

}  // namespace wq
