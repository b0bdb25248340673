// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

namespace wq {

// e-BH (Wang and Ramdas, "False discovery rate control with e-values", 2022): which of the m hypotheses whose
// ln e-values are LOGS are rejected. On average, at most the share RATE (0..1) of the rejected hypotheses is
// rejected wrongly, for any dependence between the e-values. The k largest e-values are rejected, for the
// largest k for which the k-th largest e-value is at least m / (RATE k).
std::vector<bool> e_bh(const std::vector<double>& logs, double rate);

}  // namespace wq
