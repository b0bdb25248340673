// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "machine/paths.h"

namespace wq {

// The CPUs that share a last-level cache in the kernel's view (machine/llc_rule.cpp). kernel/workqueue.c
// makes a pod of `cache` from them. Never smaller than a core.
struct Llc {
    CpuSet cpus;
    std::optional<unsigned> numa_node;  // empty if the source has no NUMA information
};

struct NumaNode {
    unsigned id = 0;
    CpuSet cpus;
};

// The CPUs of one machine at one moment. Groups contain only online CPUs, are disjoint, cover `online`
// (except `packages`), and are ordered by their lowest CPU.
struct Topology {
    std::string source;  // "live", "fsroot:DIR", "xml:FILE", "synthetic:DESC"
    CpuSet online;
    CpuSet present;             // if the source does not give it: `online`, and offline CPUs that it names
    CpuSet possible;            // equals `present` if the source does not give it
    CpuSet isolated;            // isolcpus=domain and similar (/sys/devices/system/cpu/isolated)
    CpuSet first;               // usable at the daemon's first start in this boot; may be empty
    std::vector<CpuSet> cores;  // thread siblings
    std::vector<Llc> llcs;
    std::string llc_unknown;            // why `llcs` may differ from the kernel's view; "" if they do not
    std::vector<NumaNode> nodes;        // nodes with CPUs
    std::vector<CpuSet> packages;       // sockets; a CPU without a known package is in none
    std::vector<std::string> warnings;  // what was skipped and why; if any, the pods are in doubt
};

// Which of several disjoint sets contains a CPU. The sets must outlive it.
class SetOf {
  public:
    SetOf() = default;
    explicit SetOf(const std::vector<CpuSet>& sets) {
        for (const CpuSet& set : sets) add(set);
    }

    void add(const CpuSet& set) {
        for (const unsigned cpu : set.cpus()) add(cpu, set);
    }
    void add(unsigned cpu, const CpuSet& set) {
        if (cpu >= sets_.size()) sets_.resize(cpu + 1, nullptr);
        sets_[cpu] = &set;
    }

    // nullptr: the CPU is in none.
    [[nodiscard]] const CpuSet* of(unsigned cpu) const { return cpu < sets_.size() ? sets_[cpu] : nullptr; }

  private:
    std::vector<const CpuSet*> sets_;
};

// Identifies a machine: "24 CPUs, 12 cores, 1 LLC, 0123456789abcdef". Equal if the cores, LLCs, nodes and
// MORE are equal.
std::string fingerprint(const Topology& topology, const std::string& more = "");

// The machine as the kernel saw it when it made its pods: once, at boot, including CPUs that may be offline
// now. A CPU is known if it was online and not isolated when the daemon first started in this boot
// (Topology::first; else at the first look). It stays known, with its core, LLC and node, after it goes
// offline. One that comes later never becomes known: it has the pod that it got at boot, wherever that is.
class KnownCpus {
  public:
    // Adds what NOW shows. A topology with warnings adds no groups, because groups read wrong would stay.
    void see(const Topology& now);

    // All CPUs known so far and those online, in their groups. `present`, `possible`, `isolated` and
    // `warnings` are from the last see().
    [[nodiscard]] const Topology& topology() const { return all_; }
    [[nodiscard]] const CpuSet& cpus() const { return known_; }  // those seen so far

  private:
    Topology all_;
    CpuSet first_;
    CpuSet known_;
};

// Reads the topology of the machine, or of the tree below PATHS, from sys/devices/system/{cpu,node}; its LLCs
// by machine/llc_rule.h. A file that is larger than kMaxFile or does not parse is ignored: its CPU or node
// loses this data, and `warnings` has a line about it. Without a valid file `present`, those CPUs count that
// have a folder. Isolated CPUs are in no LLC: they have no LLC id at boot, so their pod cannot be known.
// Error: no such tree, or it does not show which CPUs are online.
Result<Topology> read_cpu_files(const Paths& paths);

// The numbers of the entries PREFIX<number> ("cpu12", "node0") in FOLDER, ascending and below kMaxCpus.
std::vector<unsigned> numbered(const std::string& folder, std::string_view prefix);

// A string that changes when CPUs come or go, from the kernel's current state.
std::string cpu_state(const Paths& paths);

// Writes the CPUs of NOW that are online and not isolated to a file in /run, unless it exists, or NOW is in
// doubt. A boot clears /run, so the file has those of the daemon's first start (Topology::first): the kernel
// makes its pods once, so a CPU that comes later is not in a known one.
Status keep_first_cpus(const Paths& paths, const Topology& now);

}  // namespace wq
