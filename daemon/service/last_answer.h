// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace wq {

// Caches the last answer to a request. The cache is used if computing new answers would take more than a
// quarter of a CPU over some time, for all callers together; it may then be some seconds old. Occasional
// requests always get a new answer.
// Times are microseconds of one monotonic clock; the caller passes the current time.
class LastAnswer {
  public:
    static constexpr std::uint64_t kShare = 4;
    static constexpr std::uint64_t kBurst = 500'000;  // us of CPU time that may be spent at once

    // COST: the CPU time, in us, for computing the answer.
    void keep(std::string text, std::uint64_t now, std::uint64_t cost) {
        text_ = std::move(text);
        paid_ = std::min(std::max(paid_, now), now + kShare * kBurst) + kShare * cost;
    }
    // Returns nullptr if the answer must be computed again.
    [[nodiscard]] const std::string* at(std::uint64_t now) const {
        return text_ && paid_ > now + kShare * kBurst ? &*text_ : nullptr;
    }
    // Call it after an order, so that its result is visible at once. Only authorized callers give orders.
    void drop() { text_.reset(); }

  private:
    std::optional<std::string> text_;
    std::uint64_t paid_ = 0;  // the time at which the CPU time spent would be a quarter of the elapsed time
};

}  // namespace wq
