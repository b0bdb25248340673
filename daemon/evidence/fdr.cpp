// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/fdr.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace wq {

std::vector<bool> e_bh(const std::vector<double>& logs, double rate) {
    std::vector<double> sorted = logs;
    std::ranges::sort(sorted, std::greater<>());
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sorted.size(); i++) {
        const double asked =
            std::log(static_cast<double>(sorted.size())) - std::log(rate * static_cast<double>(i + 1));
        if (sorted[i] >= asked) least = sorted[i];
    }
    std::vector<bool> out;
    for (const double log : logs) out.push_back(log >= least);
    return out;
}

}  // namespace wq
