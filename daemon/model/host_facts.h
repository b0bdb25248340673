// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/kernel_features.h"
#include "model/topology.h"

namespace wq {

// What the conditions of a policy's host tables look at. What is empty is not known.
struct HostFacts {
    std::string arch;                     // "x86_64", "aarch64", as uname -m has it
    std::string cpu_vendor;               // "GenuineIntel", "ARM"
    std::vector<std::string> cpu_models;  // each name that it goes by: "Grace A02", "Neoverse-V2"
    std::optional<unsigned> llc_cores;    // cores of the largest last-level cache, where no LLC is in doubt
    std::optional<unsigned> cores;        // online
    std::optional<unsigned> numa_nodes;   // those with CPUs
    std::optional<bool> smt;              // a core has several online threads
    std::string kernel;                   // its release
    std::string hostname;
    std::string machine_id;                    // 32 hex digits
    std::optional<bool> is_virtual;            // in a virtual machine or a container
    std::function<KernelFeatures()> features;  // asked where a condition needs it
};

// Sets the facts that TOPOLOGY knows.
void take_counts(const Topology& topology, HostFacts& facts);

// Where a host stands among all for a host table called NAME: XXH64, seed 0, of "MACHINE_ID/NAME" over 2^64,
// which is 0 to 1.
double canary_position(const std::string& machine_id, const std::string& name);

}  // namespace wq
