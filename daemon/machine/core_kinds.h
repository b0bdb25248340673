// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/cpu_set.h"
#include "machine/topology.h"

namespace wq {

// The CPUs of a hybrid machine by kind of core. Only for display: no plan depends on it.
struct CoreKinds {
    CpuSet performance;  // P-cores
    CpuSet efficient;    // E-cores; empty if not a hybrid or not known
    CpuSet low_power;    // LP E-cores, which do not share the cache of the others
    std::string source;  // how the kinds were told apart, for display

    [[nodiscard]] bool hybrid() const { return !efficient.empty() || !low_power.empty(); }
};

// Guesses the kinds by threads if there is no better source: if some cores have one thread and others have
// several, the cores with one thread are E-cores. Not used if CPUs are offline, because they may be the
// missing siblings.
CoreKinds core_kinds_by_threads(const Topology& topology);

}  // namespace wq
