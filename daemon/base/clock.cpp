// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/clock.h"

#include <sys/random.h>

namespace wq {

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::int64_t time_suspended() {
    return clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
}

std::uint64_t random_number() {
    std::uint64_t out = 0;
    while (::getrandom(&out, sizeof out, 0) != sizeof out) {
    }
    return out;
}

}  // namespace wq
