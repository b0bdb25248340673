// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/isolation.h"

namespace wq {

CpuSet Isolation::cpus() const {
    CpuSet all = isolcpus | nohz_full;
    for (const Partition& partition : partitions)
        if (partition.type == "isolated") all |= partition.cpus;
    return all;
}

}  // namespace wq
