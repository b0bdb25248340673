// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace wq {

inline constexpr std::uint64_t kSecond = 1'000'000;  // us

inline std::uint64_t us(std::chrono::microseconds time) {
    return static_cast<std::uint64_t>(time.count());
}

// Current time of CLOCK, in ns.
std::int64_t clock_ns(clockid_t clock);
// CLOCK_MONOTONIC, in us.
std::uint64_t monotonic_us();
// Time that the system was suspended since boot, in ns: CLOCK_BOOTTIME minus CLOCK_MONOTONIC.
std::int64_t time_suspended();
// Seconds since 1970.
std::int64_t wall_clock();
// Minutes since midnight, local time; the time zone is read again each time. 0 to 1439.
unsigned minute_of_day();
// 64 random bits from getrandom(2). It does not block once the kernel's generator is initialized.
std::uint64_t random_number();

}  // namespace wq
