// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "model/topology.h"

namespace wq {

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

}  // namespace wq
