// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/journal.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/udev.h"
#include "targets/target.h"

namespace wq {

// The topology, and what udev says about workqueues. Reads only.
class Inventory {
  public:
    struct Edges {
        Log& log;
        std::function<Result<Topology>()> read_topology;
        // Whether a udev rule opts the workqueue out (WQ_TUNED_IGNORE). Empty: not known yet, ask again
        // later.
        std::function<std::optional<bool>(const std::string& name)> opted_out;
    };
    // KERNEL must outlive the Inventory.
    Inventory(Edges edges, const KernelInfo& kernel) : edges_(std::move(edges)), kernel_(kernel) {}

    // The next look reads the topology again, unless CHANGE is only about a workqueue.
    void changed(Udev::Change change);
    // Call after a reload: the topology is read again and trusted again.
    void start_over();
    [[nodiscard]] bool is_stale() const { return stale_; }
    // Reads the topology if it may have changed. Returns whether it was read.
    bool look_at_topology();

    // Sets ITEM to what was read NOW. Asks udev if its answer may have changed.
    void fill(Listed& item, Workqueue now) const;

    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    // All known CPUs and those online, and those online at the last look.
    [[nodiscard]] const Topology& topology() const { return known_.topology(); }
    [[nodiscard]] const CpuSet& online() const { return last_online_; }
    [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }  // of the known CPUs
    // Why the pods are not known, so that nothing new is set; empty if they are known.
    [[nodiscard]] const std::string& pods_unknown() const { return pods_unknown_; }
    // Whether a CPU came online since the start, or the machine was suspended. The kernel then lets the
    // workers of strict workqueues run anywhere (kernel/workqueue.c, restore_unbound_workers_cpumask()), and
    // no file shows it.
    [[nodiscard]] bool strict_in_doubt() const { return strict_in_doubt_; }
    [[nodiscard]] unsigned topology_reads() const { return topology_reads_; }  // since the start

  private:
    Edges edges_;
    const KernelInfo& kernel_;
    KnownCpus known_;
    CpuSet last_online_;
    std::string fingerprint_;
    std::string pods_unknown_;
    bool strict_in_doubt_ = false;
    bool stale_ = true;
    unsigned doubts_ = 0;  // consecutive topologies that had warnings
    unsigned topology_reads_ = 0;
};

}  // namespace wq
