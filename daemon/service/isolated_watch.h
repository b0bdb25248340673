// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "kernel/paths.h"
#include "service/isolated_items.h"

namespace wq {

// Samples the work that starts on isolated CPUs, for the metrics. All constructor arguments must outlive this
// object.
class IsolatedWatch {
  public:
    IsolatedWatch(const Paths& paths, Log& log) : paths_(paths), log_(log) {}

    // Call it at each tick, but not while windows are measured. It walks all cgroups and all workqueues, so
    // it takes a sample only once a minute. It misses nothing in between, because the kernel counts.
    void tick(WorkCounters& counters);
    [[nodiscard]] const IsolatedItems& items() const { return items_; }

  private:
    const Paths& paths_;
    Log& log_;
    IsolatedItems items_;
    unsigned wait_ = 0;  // ticks until the next sample
    std::string error_;  // last logged reason why there is no metric
};

}  // namespace wq
