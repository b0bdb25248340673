// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/result.h"

namespace wq {

// A workqueue as the kernel has it, in sysfs or not.
struct KernelWorkqueue {
    std::uint64_t address = 0;
    std::string name;           // as in sysfs; not unique among those that are not there
    std::uint64_t started = 0;  // items, since its pools were last set
    bool in_sysfs = false;
    bool follows_default = false;  // unbound, not ordered, scope left on the default
};

// A workqueue's name as sysfs has it: '/' is '!' there.
std::string sysfs_name(std::string name);

// All workqueues of the running kernel. Loads one BPF program, reads it through, and leaves nothing.
Result<std::vector<KernelWorkqueue>> list_kernel_workqueues();

// The one of WORKQUEUES that is called NAME: the one in sysfs, or else the only one. Error: none, or several.
Result<KernelWorkqueue> find_workqueue(const std::vector<KernelWorkqueue>& workqueues,
                                       const std::string& name);

}  // namespace wq
