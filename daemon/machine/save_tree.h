// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/paths.h"

namespace wq {

// Copies the files below FROM from which a topology and its plan are read to DIR, a tree for `fsroot:DIR`,
// with their permissions. What cannot be read counts as missing. Of the kernel command line only the options
// that matter are copied: others can be secret. Errors: DIR exists and is not an empty folder, or a file
// cannot be written.
Status save_tree(const Paths& from, const std::string& dir);

}  // namespace wq
