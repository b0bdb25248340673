// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/journal.h"
#include "engine/target.h"
#include "kernel/udev.h"
#include "model/kernel_info.h"
#include "model/known_cpus.h"

namespace wq {

// The topology, and what udev says of workqueues. Reads only.
class Inventory {
  public:
    struct Edges {
        Log& log;
        std::function<Result<Topology>()> read_topology;
        // WQ_TUNED_IGNORE by udev. Empty: udev has not processed the workqueue yet, and is about to.
        std::function<std::optional<bool>(const std::string& name)> opted_out;
    };
    // KERNEL outlives it.
    Inventory(Edges edges, const KernelInfo& kernel) : edges_(std::move(edges)), kernel_(kernel) {}

    // The topology is read again at the next look if CHANGE is of CPUs.
    void changed(Udev::Change change);
    // A reload: the topology is read again, and believed anew.
    void start_over();
    // Whether the topology was read.
    bool look_at_topology();

    // ITEM is what was read NOW; udev is asked, if it may have news.
    void fill(Listed& item, Workqueue now) const;

    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    // All CPUs that were ever seen, and those online at the last look.
    [[nodiscard]] const Topology& topology() const { return known_.topology(); }
    [[nodiscard]] const CpuSet& online() const { return last_online_; }
    [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }  // of the known CPUs
    // Why nothing new is set while the pods are not known; empty if they are known.
    [[nodiscard]] const std::string& pods_unknown() const { return pods_unknown_; }
    // A CPU came online since the start, or the machine was suspended: the kernel then let the workers of
    // strict workqueues run anywhere (kernel/workqueue.c, restore_unbound_workers_cpumask()), and no file
    // says so.
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
    unsigned doubts_ = 0;  // topologies read in a row that came with warnings
    unsigned topology_reads_ = 0;
};

}  // namespace wq
