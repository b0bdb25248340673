// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "model/topology.h"

namespace wq {

// The machine as the kernel made its pods of it: at boot, once, over CPUs that may be offline now. Every CPU
// that was seen online and not isolated stays known, with its core, LLC and node, when it goes offline later.
class KnownCpus {
  public:
    // Takes in what is seen now. A look with warnings teaches no groups: what it could not read would stay.
    void see(const Topology& now);

    // All known CPUs, and what else was seen, in their groups; present, possible, isolated and warnings of
    // the last look.
    [[nodiscard]] const Topology& topology() const { return all_; }
    [[nodiscard]] const CpuSet& cpus() const { return known_; }

  private:
    Topology all_;
    CpuSet known_;
};

}  // namespace wq
