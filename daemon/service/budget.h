// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace wq {

// What all callers other than root may ask of the daemon together: 20 calls a second, and 100 at once after a
// pause. Times are microseconds of one monotonic clock, which the caller brings.
class Budget {
  public:
    static constexpr std::uint64_t kInterval = 50'000;  // us for each call
    static constexpr std::uint64_t kBurst = 100;        // calls

    // Whether one more call is within it; if so, it counts.
    bool take(std::uint64_t now) {
        const std::uint64_t spent = std::max(spent_, now);
        if (spent - now > (kBurst - 1) * kInterval) return false;
        spent_ = spent + kInterval;
        return true;
    }

  private:
    std::uint64_t spent_ = 0;  // until then, at one call each interval, all calls so far would last
};

}  // namespace wq
