// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/host_facts.h"
#include "machine/paths.h"

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

// Reads the files below PATHS and the cgroups that have cpusets. Never fails: what cannot be read counts as
// missing. Reads a file per cgroup, so call it on request, not on each tick.
Isolation read_isolation(const Paths& paths);

// The possible CPUs, and those that are isolated until the next boot: by isolcpus= and nohz_full=. (On every
// kernel, /sys/devices/system/cpu/isolated has those of isolcpus= only: drivers/base/cpu.c,
// print_cpus_isolated().) Never fails, like read_isolation().
HostCpus read_boot_cpus(const Paths& paths);

// The possible CPUs, and those that are isolated now, by any means: from a few files if the kernel lists the
// CPUs of all isolated partitions (cpuset.cpus.isolated of the root, since 6.7), else from a file per cgroup.
// `possible` is empty if a list could not be read, or if there are more cgroups than we read.
HostCpus read_cpus_now(const Paths& paths);

// The block devices that swap uses, as "MAJOR:MINOR": swap partitions, the devices of file systems with swap
// files, and all devices below them (a volume, an encrypted disk). Skips files that cannot be read.
std::set<std::string> swap_devices(const Paths& paths);

// Whether the workqueue NAME belongs to a dm-crypt mapping in DEVICES. We do not know which other workqueues
// a device needs.
bool serves_swap(const std::string& name, const std::set<std::string>& devices);

}  // namespace wq
