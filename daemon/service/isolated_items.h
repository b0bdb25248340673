// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/work_counters.h"

namespace wq {

// Sums up the items of per-CPU workqueues that start on isolated CPUs, from look to look at the kernel's own
// counts. It counts from the first look on, and anew from a look on that finds other CPUs isolated; what is
// summed up by then stays.
class IsolatedItems {
  public:
    // NOW: what the kernel has counted on CPUS, the isolated ones.
    void add(const CpuSet& cpus, const std::vector<StartedWork>& now);
    // The isolated CPUs, as of the last look.
    [[nodiscard]] const CpuSet& cpus() const { return cpus_; }
    // By name, of the workqueues that there are and that ever had work there; several of one name are one.
    [[nodiscard]] std::map<std::string, std::uint64_t> items() const;

  private:
    struct Known {
        std::uint64_t counted = 0;  // by the kernel, at the last look
        std::uint64_t items = 0;    // the sum
    };
    using Key = std::pair<std::uint64_t, std::string>;  // the address may be another workqueue's later

    void keep_names(const std::map<Key, Known>& now);

    CpuSet cpus_;
    std::map<Key, Known> known_;
    std::map<std::string, std::uint64_t> gone_;  // by name
};

}  // namespace wq
