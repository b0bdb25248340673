// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "kernel/paths.h"
#include "model/host_facts.h"

namespace wq {

// What is known of the host below PATHS, whose topology is TOPOLOGY. Never fails: what cannot be read is not
// known.
//   arch        /proc/sys/kernel/arch, else, of this machine, uname(2)
//   cpu_vendor  /proc/cpuinfo: "vendor_id"; on arm64 the company of "CPU implementer", as lscpu names it
//   cpu_models  "model name" there; SMBIOS's name of the first processor, which only root may read; on arm64
//               the name of "CPU part", if it is a server's, and the device tree's model
//   kernel      /proc/sys/kernel/osrelease, hostname: /proc/sys/kernel/hostname, machine_id: /etc/machine-id
//   is_virtual  yes where systemd runs in a container (/run/systemd/container), where /proc/cpuinfo has the
//               flag "hypervisor", or the DMI vendor or product or the device tree's model is a hypervisor's;
//               but not in Xen's dom0. Not known where neither CPU flags, DMI nor a device tree can be read.
//
// While a kernel runs, the hostname may change, and so may what is counted of CPUs.
HostFacts read_host_facts(const Paths& paths, const Result<Topology>& topology);

// These three also by themselves. "" where it is not known.
std::string read_arch(const Paths& paths);
std::string read_cpu_vendor(const Paths& paths);
std::string read_hostname(const Paths& paths);

}  // namespace wq
