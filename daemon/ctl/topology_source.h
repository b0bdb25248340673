// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// Reads the topology of SOURCE:
//   live | fsroot:DIR | xml:FILE | xml:- (standard input) | synthetic:DESC.
// The first two by read_cpu_files(); ROOT is the prefix of `live`. The others with hwloc, which is
// initialized, used and freed before this returns. Errors: an unknown kind of source, or one that is absent
// or not a topology. Not thread-safe: changes the HWLOC_* environment of this process while it runs.
Result<Topology> read_topology(const std::string& source, const std::string& root = "");

// Copies the files below FROM from which a topology and its plan are read to DIR, a tree for `fsroot:DIR`,
// with their permissions. What cannot be read counts as missing. Of the kernel command line only the options
// that matter are copied: others can be secret. Errors: DIR exists and is not an empty folder, or a file
// cannot be written.
Status save_tree(const Paths& from, const std::string& dir);

}  // namespace wq
