// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wq {

double evidence_of(double log) {
    return std::min(std::exp(log), std::numeric_limits<double>::max());
}

}  // namespace wq
