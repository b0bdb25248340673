// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bpf/work_counters.h"
#include "judge/trial.h"
#include "kernel/paths.h"

namespace wq {

// What a pair of windows is measured with.
struct Meters {
    std::vector<JudgedCounter> counters;
    WorkCounters* work = nullptr;  // attached; nullptr where nothing of BPF can be had
    Paths paths;                   // of the machine's counters
};

// Clocks that must not jump within a pair, in ns: how far each is ahead of CLOCK_MONOTONIC.
struct Clocks {
    std::int64_t suspended = 0;  // CLOCK_BOOTTIME
    std::int64_t wall = 0;       // CLOCK_REALTIME
};

// Two windows being measured. Which arm runs in which is the caller's business: a window is known by its
// slot, 0 for the baseline and 1 for the candidate. Times are us of CLOCK_MONOTONIC.
class PairMeasurement {
  public:
    explicit PairMeasurement(const Meters& meters, const Clocks& clocks)
        : meters_(&meters), clocks_(clocks) {}

    void open(unsigned slot, std::uint64_t now);
    // PLANNED: how long the window should have been, in us.
    void close(unsigned slot, std::uint64_t now, std::uint64_t planned);
    // The pair is not to be used: WHY becomes its fault, unless it has one.
    void spoil(const std::string& why);
    // Once work that was queued in the windows had its time to end.
    void finish(const Clocks& clocks);

    // After finish(). Why the pair cannot be used, whatever its values are; "" if it can.
    [[nodiscard]] const std::string& fault() const { return fault_; }
    [[nodiscard]] const WindowPair& pair() const { return pair_; }
    [[nodiscard]] bool counted() const { return counted_; }       // false: items() is not what there was
    [[nodiscard]] std::uint64_t items() const { return items_; }  // of both windows, lost ones included
    [[nodiscard]] std::uint64_t stuck() const { return stuck_; }
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    struct Window {
        std::uint64_t opened = 0;
        double seconds = 0;
        std::vector<double> before;  // of the machine's counters, in their order; NaN for the others
        std::vector<double> values;  // of all counters
    };
    double read(const std::string& counter);
    void read_work(unsigned slot);
    void spoil_count(const Error& error);

    const Meters* meters_;
    Clocks clocks_;
    std::array<Window, 2> windows_;
    std::string fault_;
    bool counted_ = true;
    WindowPair pair_;
    std::uint64_t items_ = 0;
    std::uint64_t stuck_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t unfinished_ = 0;
};

}  // namespace wq
