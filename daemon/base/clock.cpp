// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/clock.h"

#include <sys/random.h>

namespace wq {

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::uint64_t monotonic_us() {
    return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC)) / 1000;
}

std::int64_t time_suspended() {
    return clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
}

std::int64_t wall_clock() {
    return static_cast<std::int64_t>(std::time(nullptr));
}

unsigned minute_of_day() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::tzset();  // localtime_r() may ignore a change of the time zone
    ::localtime_r(&now, &local);
    return static_cast<unsigned>(local.tm_hour * 60 + local.tm_min);
}

std::uint64_t random_number() {
    std::uint64_t out = 0;
    while (::getrandom(&out, sizeof out, 0) != sizeof out) {
    }
    return out;
}

}  // namespace wq
