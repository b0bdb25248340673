// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// The CPUs of a host that a mask of the policy may contain (`possible`) and may not contain (`isolated`).
struct HostCpus {
    CpuSet possible;  // empty: not known
    CpuSet isolated;
    friend bool operator==(const HostCpus&, const HostCpus&) = default;
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

// The kind of a machine, as far as a policy's conditions can name it. Empty fields are not known.
struct FleetMachine {
    std::string arch;    // as in uname -m
    std::string vendor;  // of the CPU
    std::string model;   // of the CPU
    std::optional<std::uint64_t> packages;
    std::optional<std::uint64_t> cores;      // online
    std::optional<std::uint64_t> llc_cores;  // of the largest LLC
    friend auto operator<=>(const FleetMachine&, const FleetMachine&) = default;
};
// The kind of the host with FACTS, whose current CPUs are those of TOPOLOGY.
FleetMachine fleet_machine(HostFacts facts, const Topology& topology);

// Position of a host, in 0..1, for the host table NAME: XXH64, seed 0, of "MACHINE_ID/NAME", divided by
// 2^64.
double canary_position(const std::string& machine_id, const std::string& name);

// Reads the facts about the host below PATHS, whose topology is TOPOLOGY. Never fails: what cannot be read
// is not known. The files are named in host_facts.cpp; SMBIOS's name of the processor only root may read.
// The hostname and the numbers of CPUs, cores and nodes may change while a kernel runs.
HostFacts read_host_facts(const Paths& paths, const Result<Topology>& topology);

// The first CPU's lines of /proc/cpuinfo; "" if it cannot be read.
std::string read_first_cpuinfo(const Paths& paths);

// Single facts. "" if not known.
std::string read_arch(const Paths& paths);
std::string read_cpu_vendor(const Paths& paths);
std::string read_hostname(const Paths& paths);

}  // namespace wq
