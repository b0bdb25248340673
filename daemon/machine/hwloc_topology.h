// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/topology.h"

namespace wq {

// Reads a topology with hwloc, which is initialized, used and freed before this returns. SOURCE is
//   live | fsroot:DIR | xml:FILE | xml:- (standard input) | synthetic:DESC.
// For `live` and `fsroot`, the caches come from hwloc. The online, present, possible and isolated CPUs,
// thread siblings, packages and NUMA nodes come from the kernel's files (hwloc's Core objects are not always
// thread siblings: Opteron 6276). LLCs follow machine/llc_rule.h. ROOT is the prefix of /sys for `live`; ""
// is this machine. Errors: an unknown kind of source, or a file that is absent or not a topology. Invalid
// files of one CPU or node only lose their own data, and `warnings` has a line about it. Isolated CPUs are
// in no LLC: they have no LLC id at boot, so their pod cannot be known. Not thread-safe: changes the HWLOC_*
// environment of this process while it runs.
Result<Topology> read_topology(const std::string& source, const std::string& root = "");

}  // namespace wq
