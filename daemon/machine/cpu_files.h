// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// Contents of sys/devices/system/{cpu,node}, read strictly: a topology without LLCs. A file that is larger
// than kMaxFile or does not parse is ignored; its data is then missing, and `warnings` has a line about it.
// Without a valid file `present`, those CPUs count that have a folder.
struct CpuFiles : Topology {
    std::vector<CpuSet> clusters;   // like `packages`: groups of cores inside a package, if known
    std::vector<CpuSet> outermost;  // like `packages`: CPUs that share their last cache
    CpuSet cache_known;             // online CPUs whose cache files are present and valid
};

// ROOT is the prefix of /sys; "" is this machine. Error: no such tree, or it does not show which CPUs are
// online.
Result<CpuFiles> read_cpu_files(const std::string& root);

// The numbers of the entries PREFIX<number> ("cpu12", "node0") in FOLDER, ascending; one that is too large
// for a CPU is at least kMaxCpus. Empty if there is no such folder.
std::vector<unsigned> numbered(const std::string& folder, std::string_view prefix);

// A string that changes when CPUs come or go, from the kernel's current state.
std::string cpu_state(const Paths& paths);

}  // namespace wq
