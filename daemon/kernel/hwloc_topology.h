// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/result.h"
#include "model/topology.h"

namespace wq {

// Reads a topology through hwloc, which is loaded, read and freed before this returns. SOURCE is
//   live | fsroot:DIR | xml:FILE | synthetic:DESC.
// For `live` and `fsroot` the cores come from the kernel's thread_siblings, which hwloc's Core objects do not
// always follow (Opteron 6276), and DIR/sys/devices/system/cpu gives present, possible and isolated.
// Errors: an unknown kind of source, a file that is absent or no topology. A CPU whose files are absurd is
// left out, with a line in `warnings`. Changes the HWLOC_* environment of this process; not for several
// threads.
Result<Topology> read_topology(const std::string& source);

}  // namespace wq
