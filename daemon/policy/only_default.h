// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq {

// The unbound workqueues that have no folder in sysfs: only the target @default reaches them, and no rule
// does. What NAME, or all names that the glob NAME can mean, belong to: "NFS", "btrfs". "": none of these.
std::string why_only_default(const std::string& name);

}  // namespace wq
