// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/slot.h"

#include <algorithm>
#include <array>

namespace wq {
namespace {

struct Row {
    SlotAction action;
    unsigned window;
};

constexpr std::array kRows = {
    Row{SlotAction::put, 1},   Row{SlotAction::put, 0},    Row{SlotAction::open, 0}, Row{SlotAction::look, 0},
    Row{SlotAction::close, 0}, Row{SlotAction::put, 1},    Row{SlotAction::open, 1}, Row{SlotAction::look, 1},
    Row{SlotAction::close, 1}, Row{SlotAction::finish, 1},
};
constexpr std::uint64_t kShare = 100;  // the writes of a window may take 1/100 of it

}  // namespace

SlotClock::SlotClock(const SlotTimes& times, std::uint64_t now) : times_(times), due_(now) {}

SlotAction SlotClock::action() const {
    return kRows.at(step_).action;
}

unsigned SlotClock::window() const {
    return kRows.at(step_).window;
}

void SlotClock::done(std::uint64_t now) {
    switch (action()) {
        case SlotAction::put:
            due_ = now + (step_ == 0 ? times_.lead : times_.washout);
            break;
        case SlotAction::open:
            opened_ = now;
            due_ = now + std::min(times_.look, times_.counted());
            break;
        case SlotAction::look:
            due_ = opened_ + times_.counted();
            break;
        case SlotAction::close:
            due_ = window() == 0 ? now : now + times_.drain;
            break;
        case SlotAction::finish:
            break;
    }
    step_++;
}

SlotSize size_of_slot(const std::vector<std::uint64_t>& writes, std::uint64_t window, std::size_t most) {
    SlotSize out{0, window};
    std::uint64_t sum = 0;
    for (const std::uint64_t one : writes) {
        if (out.targets == most || (out.targets > 0 && (sum + one) * kShare > window)) break;
        sum += one;
        out.targets++;
    }
    if (out.targets == 1) out.window = std::clamp(sum * kShare, window, std::max(window, kLongestWindow));
    return out;
}

}  // namespace wq
