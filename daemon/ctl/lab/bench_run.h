// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>

#include "bpf/work_counters.h"
#include "ctl/lab/bench_devices.h"
#include "ctl/lab/bench_load.h"
#include "ctl/lab/bench_result.h"
#include "ctl/lab/guardian.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq::bench {

inline constexpr std::uint64_t kDeviceBytes = 128U << 20U;
// MiB of memory that must be available: twice the size of the writes in flight, and a reserve.
std::uint64_t needed_mib(const Settings& settings);

struct Tools {
    Paths paths;
    Devices& devices;
    Load& load;
    WorkCounters& counters;
    // Called with the guardian before the first device is made; with nullptr before the guardian restores.
    std::function<void(const ab::Guardian*)> guarded = [](const ab::Guardian*) {};
};

struct Machine {
    const Topology& topology;
    const KernelInfo& kernel;
};

// Makes the devices, compares all scopes that make different pools on MACHINE, and removes the devices in any
// case. The caller must hold the lock of take_lock() and must have removed what an earlier run left. After an
// error, RESULT has the completed rounds.
Status run_bench(const Tools& tools, const Machine& machine, BenchResult& result);

}  // namespace wq::bench
