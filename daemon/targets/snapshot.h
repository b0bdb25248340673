// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/journal.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/udev.h"

namespace wq {

// The machine as all decisions of one event see it: read when an event says that it may have changed, and
// passed by reference. Reads only.
class Snapshot {
  public:
    // LOG and KERNEL must outlive the Snapshot.
    Snapshot(Log& log, std::function<Result<Topology>()> read_topology, const KernelInfo& kernel_info)
        : kernel(kernel_info), log_(log), read_topology_(std::move(read_topology)) {}

    // The next look reads the topology again, unless CHANGE is only about a workqueue.
    void changed(Udev::Change change);
    // Reads the topology if it may have changed. Returns whether it was read.
    bool look_at_topology();

    [[nodiscard]] const Topology& topology() const { return known_.topology(); }  // all known CPUs

    const KernelInfo& kernel;
    CpuSet online;            // at the last look
    std::string fingerprint;  // of the known CPUs
    // Why the pods are not known, so that nothing new is set; empty if they are known.
    std::string pods_unknown;
    // Whether a CPU came online since the start, or the machine was suspended. The kernel then lets the
    // workers of strict workqueues run anywhere (kernel/workqueue.c, restore_unbound_workers_cpumask()), and
    // no file shows it.
    bool strict_in_doubt = false;
    bool stale = true;  // the next look reads the topology again
    unsigned topology_reads = 0;

  private:
    Log& log_;
    std::function<Result<Topology>()> read_topology_;
    KnownCpus known_;
};

}  // namespace wq
