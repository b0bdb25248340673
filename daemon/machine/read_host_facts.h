// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/core_kinds.h"
#include "machine/host_facts.h"
#include "machine/io_devices.h"
#include "machine/paths.h"

namespace wq {

// Reads the facts about the host below PATHS, whose topology is TOPOLOGY. Never fails: what cannot be read
// is not known.
//   arch        /proc/sys/kernel/arch, else uname(2) if it is this machine
//   cpu_vendor  /proc/cpuinfo: "vendor_id"; on arm64 the company of "CPU implementer", as lscpu names it
//   cpu_models  "model name" in /proc/cpuinfo; SMBIOS's name of the first processor (only root may read it);
//               on arm64 the name of "CPU part", if it is a server's, and the device tree's model
//   kernel      /proc/sys/kernel/osrelease, hostname: /proc/sys/kernel/hostname, machine_id: /etc/machine-id
//   is_virtual  true if systemd runs in a container (/run/systemd/container), if /proc/cpuinfo has the flag
//               "hypervisor", or if the DMI vendor, the DMI product or the device tree's model belongs to a
//               hypervisor; false in Xen's dom0. Not known if CPU flags, DMI and a device tree are missing.
//
// The hostname and the numbers of CPUs, cores and nodes may change while a kernel runs.
HostFacts read_host_facts(const Paths& paths, const Result<Topology>& topology);

// The first CPU's lines of /proc/cpuinfo; "" if it cannot be read.
std::string read_first_cpuinfo(const Paths& paths);

// Single facts. "" if not known.
std::string read_arch(const Paths& paths);
std::string read_cpu_vendor(const Paths& paths);
std::string read_hostname(const Paths& paths);

// Finds the kinds of TOPOLOGY's cores: from the kernel's PMUs of Intel hybrids (/sys/devices/cpu_core,
// cpu_atom and cpu_lowpower), else from cpu_capacity (arm64, and x86 since 6.12), else from threads.
CoreKinds read_core_kinds(const Paths& paths, const Topology& topology);

// Reads the files below PATHS; names are sorted and printable. Files that cannot be read count as missing. A
// dm-crypt mapping is recognized by the UUID that cryptsetup sets, or by its workqueue (Linux 6.10 or later).
IoDevices read_io_devices(const Paths& paths);

}  // namespace wq
