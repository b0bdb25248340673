// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// The e-value whose logarithm is LOG, at most the largest double.
double evidence_of(double log);

}  // namespace wq
