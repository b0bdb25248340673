// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace wq {

// What was last said to who asked. It is said again where finding out anew would cost those who ask, however
// many they are, more than a quarter of a CPU over some time: who asks now and then never meets that. Times
// are microseconds of one monotonic clock, which the caller brings.
class LastAnswer {
  public:
    static constexpr std::uint64_t kShare = 4;
    static constexpr std::uint64_t kBurst = 500'000;  // of CPU time that may be spent at once

    // COST: the CPU time that finding out took.
    void keep(std::string text, std::uint64_t now, std::uint64_t cost) {
        text_ = std::move(text);
        paid_ = std::min(std::max(paid_, now), now + kShare * kBurst) + kShare * cost;
    }
    // nullptr: find out anew.
    [[nodiscard]] const std::string* at(std::uint64_t now) const {
        return text_ && paid_ > now + kShare * kBurst ? &*text_ : nullptr;
    }
    // It is true no more.
    void drop() { text_.reset(); }

  private:
    std::optional<std::string> text_;
    std::uint64_t paid_ = 0;  // when a quarter of the time since the beginning would be what was spent
};

}  // namespace wq
