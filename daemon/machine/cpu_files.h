// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// Reads the topology of the machine, or of the tree below PATHS, from sys/devices/system/{cpu,node}; its LLCs
// by machine/llc_rule.h. A file that is larger than kMaxFile or does not parse is ignored: its CPU or node
// loses this data, and `warnings` has a line about it. Without a valid file `present`, those CPUs count that
// have a folder. Isolated CPUs are in no LLC: they have no LLC id at boot, so their pod cannot be known.
// Error: no such tree, or it does not show which CPUs are online.
Result<Topology> read_cpu_files(const Paths& paths);

// The numbers of the entries PREFIX<number> ("cpu12", "node0") in FOLDER, ascending and below kMaxCpus.
std::vector<unsigned> numbered(const std::string& folder, std::string_view prefix);

// A string that changes when CPUs come or go, from the kernel's current state.
std::string cpu_state(const Paths& paths);

// Writes the CPUs of NOW that are online and not isolated to a file in /run, unless it exists, or NOW is in
// doubt. A boot clears /run, so the file has those of the daemon's first start (Topology::first): the kernel
// makes its pods once, so a CPU that comes later is not in a known one.
Status keep_first_cpus(const Paths& paths, const Topology& now);

}  // namespace wq
