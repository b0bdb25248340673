// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace wq {

// Detects when the daemon has finished its work for now. Pages that were read for the work can be dropped
// then. Dropping them at every tick would only cause them to be read again.
class Quiet {
  public:
    // Call it after work that is not part of a tick or of a look at the traffic. The start counts as work.
    void worked() { busy_ = true; }
    // Call it at each tick. Returns true if there was no work since the last tick, but there was in the
    // interval before it.
    bool fell() {
        const bool quiet = !std::exchange(busy_, false);
        return std::exchange(was_busy_, !quiet) && quiet;
    }

  private:
    bool busy_ = true;      // since the last tick
    bool was_busy_ = true;  // in the interval before it
};

// Combines a burst of events: the work is due 200 ms after the last event, at most 1 s after the first.
// Times are microseconds of one monotonic clock; the caller passes the current time.
class Coalescer {
  public:
    static constexpr std::uint64_t kQuiet = 200'000;
    static constexpr std::uint64_t kMost = 1'000'000;

    void event(std::uint64_t now) {
        if (!first_) first_ = now;
        due_ = std::min(now + kQuiet, *first_ + kMost);
    }
    // When the work is due; empty if nothing is pending.
    [[nodiscard]] std::optional<std::uint64_t> due() const {
        return first_ ? std::optional(due_) : std::nullopt;
    }
    void done() { first_.reset(); }

  private:
    std::optional<std::uint64_t> first_;
    std::uint64_t due_ = 0;
};

}  // namespace wq
