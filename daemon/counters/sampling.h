// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// Returns N for WorkCounters::sample(), which times every N-th item of a target: ITEMS / kTimed, 1 to 65535.
// ITEMS is the expected number per window; any value is valid. About kTimed items are then timed: enough for
// a mean to 2% if the standard deviation is as large as the mean, at a negligible cost. Both windows of a
// pair need the same N, so ITEMS must come from before the pair: from the traffic or from the previous pair.
inline constexpr unsigned kTimed = 2000;
unsigned sampled_every(double items);

}  // namespace wq
