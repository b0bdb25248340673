// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/cpu_set.h"

namespace wq {

// A valid cpuset partition: CPUs that belong to one cgroup only.
struct Partition {
    std::string cgroup;  // "/rt.slice", printable; "" if the kernel lists the CPUs but no cgroup was found
    CpuSet cpus;         // its own, without CPUs given to partitions below it
    std::string type;    // "root", or "isolated", which also has no load balancing
};

// CPUs that were isolated from the others, at boot or later.
struct Isolation {
    CpuSet isolcpus;   // /sys/devices/system/cpu/isolated
    CpuSet nohz_full;  // /sys/devices/system/cpu/nohz_full
    std::vector<Partition> partitions;
    bool complete = true;  // false: there are more cgroups than we read

    // The CPUs that we must leave alone. Partitions of type "root" are not included: their CPUs are
    // load-balanced among themselves, and they may be most of the machine.
    [[nodiscard]] CpuSet cpus() const;
};

}  // namespace wq
