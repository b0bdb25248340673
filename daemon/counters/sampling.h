// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// Which items of a target to time, for WorkCounters::sample(): every N-th, where a window of it has ITEMS,
// N from 1 (all, below kTimed) to 65535. About kTimed are timed then: enough for a mean to 2% where times
// differ as much as they are long, and few enough to cost nothing. Both windows of a pair need the same N, so
// it comes from what was known before the pair: traffic, or the pair before. Any value will do for ITEMS.
inline constexpr unsigned kTimed = 2000;
unsigned sampled_every(double items);

}  // namespace wq
