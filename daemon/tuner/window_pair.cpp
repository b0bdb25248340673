// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/window_pair.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "counters/counter_table.h"
#include "counters/machine_counter.h"

namespace wq {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kJump = 500'000'000;  // ns
constexpr std::uint64_t kMostLost = 20;      // one item in so many, of both windows together
constexpr std::uint64_t kSlack = 50'000;     // us that any window may be late

}  // namespace

void PairMeasurement::spoil(const std::string& why) {
    if (fault_.empty()) fault_ = why;
}

// Rather than what else went wrong: without a count nothing can be said of the traffic.
void PairMeasurement::spoil_count(const Error& error) {
    if (counted_) fault_ = error.text;
    counted_ = false;
}

double PairMeasurement::read(const std::string& counter) {
    if (is_work_counter(counter)) return kNoValue;
    const auto value = read_machine_counter(meters_->paths, counter);
    if (!value) spoil(value.error().text);
    return value.value_or(kNoValue);
}

void PairMeasurement::open(unsigned slot, std::uint64_t now) {
    Window& window = windows_.at(slot);
    window.opened = now;
    for (const JudgedCounter& counter : meters_->counters) window.before.push_back(read(counter.name));
    if (meters_->work == nullptr) return;
    if (const auto begun = meters_->work->begin(0, slot); !begun) spoil_count(begun.error());
}

void PairMeasurement::close(unsigned slot, std::uint64_t now, std::uint64_t planned) {
    Window& window = windows_.at(slot);
    if (meters_->work != nullptr) meters_->work->pause(0);
    const std::uint64_t lasted = now - window.opened;
    window.seconds = static_cast<double>(lasted) / 1e6;
    // A machine that stood still (a paused guest, a stall) is not the one that the other window saw.
    if (lasted > planned + planned / 5 + kSlack) spoil("a window lasted too long");
    for (std::size_t i = 0; i < meters_->counters.size(); i++) {
        window.values.push_back(kNoValue);
        const double before = window.before[i];
        if (std::isnan(before)) continue;
        const std::string& name = meters_->counters[i].name;
        const double after = read(name);
        // Where nothing happened both windows have the same value, also where one was a moment longer.
        const double seconds = after == before ? static_cast<double>(planned) / 1e6 : window.seconds;
        const auto value = value_of_window(name, before, after, seconds);
        if (!value) spoil(value.error().text);
        window.values.back() = value.value_or(kNoValue);
    }
}

void PairMeasurement::read_work(unsigned slot) {
    const auto count = meters_->work->read(0, slot);
    if (!count) return spoil_count(count.error());
    items_ += count->items + count->lost + count->unfinished;
    stuck_ += count->stuck;
    lost_ += count->lost;
    unfinished_ += count->unfinished;
    Window& window = windows_.at(slot);
    for (std::size_t i = 0; i < meters_->counters.size(); i++)
        if (const CounterKind* kind = find_counter(meters_->counters[i].name);
            kind != nullptr && kind->of_work != nullptr)
            window.values[i] = kind->of_work(*count, window.seconds);
}

void PairMeasurement::finish(const Clocks& clocks) {
    if (std::llabs(clocks.suspended - clocks_.suspended) > kJump) spoil("the machine was suspended");
    if (std::llabs(clocks.wall - clocks_.wall) > kJump) spoil("the clock jumped");
    if (meters_->work != nullptr) {
        for (const unsigned slot : {0U, 1U}) read_work(slot);
        pair_.items = items_;
        if (lost_ * kMostLost > items_) spoil("too many items were lost");
        if (unfinished_ * kMostLost > items_) spoil("too many items outlived the pair");
    }
    for (std::size_t i = 0; i < meters_->counters.size(); i++)
        pair_.readings.push_back({windows_[0].values.at(i), windows_[1].values.at(i)});
}

}  // namespace wq
