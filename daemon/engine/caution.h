// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <deque>

namespace wq {

// Conditions that stop an experiment early. None of them is a verdict.

// Whether a load starves: COMPLETED is less than a third of the items EXPECTED in the same time. False if
// EXPECTED is too small to tell. Call it for the windows of both arms: if only the candidate's windows were
// checked, the size of a difference would depend on the coin.
bool starves(double completed, double expected);

// Whether a pair's difference D (ln of the candidate's cost over the reference's) is above ln 3 by more than
// the noise of the differences BEFORE it explains. The noise is their deviation about their mean, so a steady
// effect is not part of it. False with fewer than kLeastForNoise differences.
bool is_beyond_noise(const std::deque<double>& before, double d);
inline constexpr std::size_t kLeastForNoise = 4;

// The time that a target lost to experiments today.
class LostTime {
  public:
    // Adds the part of a window of SECONDS that the cheaper arm would not have needed: the cost was D, as ln,
    // above its cost. Never more than SECONDS. DAY: days since 1970.
    void add(std::int64_t day, double d, double seconds);
    [[nodiscard]] double on(std::int64_t day) const { return day == day_ ? lost_ : 0; }

  private:
    std::int64_t day_ = 0;
    double lost_ = 0;
};

}  // namespace wq
