// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>

namespace wq {

// The call limit for all callers other than root together: 20 calls per second, and a burst of 100 after a
// pause. Times are microseconds of one monotonic clock; the caller passes the current time.
class Budget {
  public:
    static constexpr std::uint64_t kInterval = 50'000;  // us per call
    static constexpr std::uint64_t kBurst = 100;        // calls

    // Returns whether one more call is allowed, and if so, counts it.
    bool take(std::uint64_t now) {
        const std::uint64_t spent = std::max(spent_, now);
        if (spent - now > (kBurst - 1) * kInterval) return false;
        spent_ = spent + kInterval;
        return true;
    }

  private:
    std::uint64_t spent_ = 0;  // the time until which all calls so far use up the rate
};

}  // namespace wq
