// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "model/topology.h"

namespace wq {

// The machine as the kernel saw it when it made its pods: once, at boot, including CPUs that may be offline
// now. Every CPU that was once seen online and not isolated stays known, with its core, LLC and node, after
// it goes offline.
class KnownCpus {
  public:
    // Adds what NOW shows. A topology with warnings adds no groups, because groups read wrong would stay.
    void see(const Topology& now);

    // All CPUs known so far, in their groups. `present`, `possible`, `isolated` and `warnings` are from the
    // last see().
    [[nodiscard]] const Topology& topology() const { return all_; }
    [[nodiscard]] const CpuSet& cpus() const { return known_; }

  private:
    Topology all_;
    CpuSet known_;
};

}  // namespace wq
