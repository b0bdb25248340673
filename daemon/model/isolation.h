// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/cpu_set.h"

namespace wq {

// A valid cpuset partition: CPUs that a cgroup has for itself.
struct Partition {
    std::string cgroup;  // "/rt.slice", printable; "" where the kernel tells the CPUs but no cgroup was found
    CpuSet cpus;         // its own; those that it gave to partitions below it are theirs
    std::string type;    // "root", or "isolated": without load balancing either
};

// CPUs that were set apart from the others, at boot or since.
struct Isolation {
    CpuSet isolcpus;   // as /sys/devices/system/cpu/isolated has them
    CpuSet nohz_full;  // as /sys/devices/system/cpu/nohz_full has them
    std::vector<Partition> partitions;
    bool complete = true;  // false: there are more cgroups than were looked at

    // What is to be left alone: all but the partitions of type "root", which are balanced among themselves,
    // and may be most of a machine.
    [[nodiscard]] CpuSet cpus() const;
};

}  // namespace wq
