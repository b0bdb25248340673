// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"

namespace wq {

// The CPUs of a host that a mask of the policy may contain (`possible`) and may not contain (`isolated`).
struct HostCpus {
    CpuSet possible;  // empty: not known
    CpuSet isolated;
};

// Facts for checking the conditions of a policy's host tables, and its masks. An empty value is not known.
struct HostFacts {
    std::string arch;                     // as in uname -m: "x86_64", "aarch64"
    std::string cpu_vendor;               // "GenuineIntel", "ARM"
    std::vector<std::string> cpu_models;  // all names of the model: "Grace A02", "Neoverse-V2"
    std::optional<unsigned> llc_cores;    // cores of the largest LLC; empty if an LLC is in doubt
    std::optional<unsigned> cores;        // online
    std::optional<unsigned> numa_nodes;   // nodes with CPUs
    std::optional<bool> smt;              // some core has several online threads
    std::string kernel;                   // release
    std::string hostname;
    std::string machine_id;                    // 32 hex digits
    std::optional<bool> is_virtual;            // in a virtual machine or a container
    std::function<KernelFeatures()> features;  // called only if a condition needs it
    // The possible CPUs, and those isolated at boot. Called only if a mask in force names CPUs.
    std::function<HostCpus()> cpus = {};
};

// Sets the facts that follow from TOPOLOGY.
void take_counts(const Topology& topology, HostFacts& facts);

// Position of a host, in 0..1, for the host table NAME: XXH64, seed 0, of "MACHINE_ID/NAME", divided by
// 2^64.
double canary_position(const std::string& machine_id, const std::string& name);

}  // namespace wq
