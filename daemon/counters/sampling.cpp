// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/sampling.h"

#include <algorithm>
#include <cmath>

namespace wq {

unsigned sampled_every(double items) {
    constexpr double kMost = 65535;
    if (!(items >= kTimed)) return 1;  // NaN too
    return static_cast<unsigned>(std::min(std::round(items / kTimed), kMost));
}

}  // namespace wq
