// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <deque>

namespace wq {

// What stops an experiment early. None of it is a verdict.

// Whether COMPLETED items, where EXPECTED came in the same time, are a load that starves: under a third. Too
// few to tell are no reason. It is asked of the windows of both arms: asked of the candidate's alone, it
// would make the size of a difference depend on the coin.
bool starves(double completed, double expected);

// Whether a pair's difference D (ln of cost over cost) is three times the cost beyond what the noise of the
// differences BEFORE it explains. The noise is their deviation about their mean, so that an effect that is
// steady is none of it. With fewer than kLeastForNoise differences nothing is beyond it.
bool is_beyond_noise(const std::deque<double>& before, double d);
inline constexpr std::size_t kLeastForNoise = 4;

// The time that a target lost to experiments today.
class LostTime {
  public:
    // SECONDS of a window whose cost was D above the reference's; DAY since 1970.
    void add(std::int64_t day, double d, double seconds);
    [[nodiscard]] double on(std::int64_t day) const { return day == day_ ? lost_ : 0; }

  private:
    std::int64_t day_ = 0;
    double lost_ = 0;
};

}  // namespace wq
