// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "base/journal.h"
#include "bpf/work_counters.h"
#include "machine/paths.h"

namespace wq {

// Sums up the items of per-CPU workqueues that start on isolated CPUs, from samples of the kernel's own
// counts. The first sample is only the start value. So is the first sample after the set of isolated CPUs
// changed; the sums until then are kept.
class IsolatedItems {
  public:
    // Adds a sample. NOW: the kernel's counts on CPUS, the isolated CPUs.
    void add(const CpuSet& cpus, const std::vector<StartedWork>& now);
    // The isolated CPUs at the last sample.
    [[nodiscard]] const CpuSet& cpus() const { return cpus_; }
    // The sums by name, of existing workqueues that ever had work there. Workqueues of the same name are
    // added up.
    [[nodiscard]] std::map<std::string, std::uint64_t> items() const;

  private:
    struct Known {
        std::uint64_t counted = 0;  // the kernel's count at the last sample
        std::uint64_t items = 0;    // the sum
    };
    using Key = std::pair<std::uint64_t, std::string>;  // a later workqueue may get the same address

    void keep_names(const std::map<Key, Known>& now);

    CpuSet cpus_;
    std::map<Key, Known> known_;
    std::map<std::string, std::uint64_t> gone_;  // by name
};

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
