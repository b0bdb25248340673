// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/core_kinds.h"

namespace wq {

CoreKinds core_kinds_by_threads(const Topology& topology) {
    static constexpr std::size_t kLeast = 2;  // E-cores; an odd number of CPUs in a guest leaves one
    CoreKinds out;
    if (!(topology.present - topology.online).empty()) return out;
    std::size_t single = 0;
    for (const CpuSet& core : topology.cores) {
        const bool one = core.count() == 1;
        (one ? out.efficient : out.performance) |= core;
        single += one ? 1 : 0;
    }
    if (single < kLeast || out.performance.empty()) return {};
    out.source = "by the number of threads per core: the source does not give the kinds";
    return out;
}

}  // namespace wq
