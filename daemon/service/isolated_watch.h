// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "bpf/work_counters.h"
#include "kernel/paths.h"
#include "service/isolated_items.h"

namespace wq {

// Looks what starts on isolated CPUs, for the metrics. All constructor arguments must outlive this object.
class IsolatedWatch {
  public:
    IsolatedWatch(const Paths& paths, Log& log) : paths_(paths), log_(log) {}

    // At each tick, but not while windows are measured: it walks all cgroups and all workqueues, so
    // it looks only once a minute. Nothing is missed in between, as the kernel counts.
    void tick(WorkCounters& counters);
    [[nodiscard]] const IsolatedItems& items() const { return items_; }

  private:
    const Paths& paths_;
    Log& log_;
    IsolatedItems items_;
    unsigned wait_ = 0;  // ticks until the next look
    std::string error_;  // why they are not counted, as last said
};

}  // namespace wq
