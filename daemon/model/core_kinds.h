// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/cpu_set.h"
#include "model/topology.h"

namespace wq {

// The CPUs of a hybrid machine by the kind of their cores. Only drawings and texts use this: no plan depends
// on it.
struct CoreKinds {
    CpuSet performance;  // P-cores
    CpuSet efficient;    // E-cores; empty: not a hybrid, or nothing is known
    CpuSet low_power;    // LP E-cores, outside of the others' cache
    std::string source;  // what they were told apart by, for people

    [[nodiscard]] bool hybrid() const { return !efficient.empty() || !low_power.empty(); }
};

// Told apart by threads, where nothing better is known: cores of one thread beside cores of several are
// E-cores. Not where CPUs are offline, since these may be the missing siblings.
CoreKinds core_kinds_by_threads(const Topology& topology);

}  // namespace wq
