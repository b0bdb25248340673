// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

namespace wq {

// e-BH (Wang and Ramdas, "False discovery rate control with e-values", 2022): of the hypotheses with these ln
// e-values, those that are rejected so that on average at most the share RATE (0..1) of what is rejected is
// rejected wrongly, however the e-values depend on each other. They are the k largest, for the largest k
// where the k-th largest e-value is at least m / (RATE k).
std::vector<bool> e_bh(const std::vector<double>& logs, double rate);

}  // namespace wq
