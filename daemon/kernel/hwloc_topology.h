// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "model/topology.h"

namespace wq {

// Reads a topology through hwloc, which is loaded, read and freed before this returns. SOURCE is
//   live | fsroot:DIR | xml:FILE | synthetic:DESC.
// For `live` and `fsroot` the caches are hwloc's; online, present, possible and isolated CPUs, thread
// siblings, packages and NUMA nodes are the kernel's files' (hwloc's Core objects are not always thread
// siblings: Opteron 6276); LLCs by kernel/llc_rule.h. ROOT is the prefix of /sys for `live`; "" is this
// machine. Errors: an unknown kind of source, a file that is absent or no topology. Absurd files of one CPU
// or node cost what they would have told, with a line in `warnings`. Isolated CPUs are in no LLC: they have
// no LLC id at boot, so that their pod cannot be known (facts 4). Changes the HWLOC_* environment of this
// process while it runs; not for several threads.
Result<Topology> read_topology(const std::string& source, const std::string& root = "");

}  // namespace wq
