// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// An e-value from its logarithm: the largest double where it is larger.
double evidence_of(double log);

}  // namespace wq
