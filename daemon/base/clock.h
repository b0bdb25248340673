// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <ctime>

namespace wq {

// CLOCK now, in ns.
std::int64_t clock_ns(clockid_t clock);
// Time that this boot has spent suspended, in ns: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.
std::int64_t time_suspended();
// 64 fair coins: the kernel's own randomness, which does not block once a machine is up.
std::uint64_t random_number();

}  // namespace wq
