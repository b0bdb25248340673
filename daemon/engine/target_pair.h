// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_counters.h"
#include "evidence/comparison.h"
#include "kernel/paths.h"

namespace wq {

// What a pair is measured with.
struct Meters {
    std::vector<ComparedCounter> counters;
    WorkCounters* work = nullptr;  // attached; nullptr where work is not counted here
    unsigned index = 0;            // of the target
    Paths paths;                   // of the machine's counters
    std::uint64_t min_items = 0;   // per window
};

// What became of a pair. Windows are known by their place in time, 0 or 1: so nothing here can depend on what
// the coin chose.
struct PairResult {
    std::string drop;              // why it counts for nothing; "" if it counts
    std::optional<unsigned> lost;  // the window that counts against its arm
    // Of each counter, in both windows; empty where a guard was not read.
    std::vector<std::optional<std::array<double, 2>>> values;
    std::uint64_t items = 0;  // of both windows, open and lost ones included
    std::uint64_t stuck = 0;  // of these, on pools that are no longer the workqueue's
    bool counted = true;      // false: `items` is not what there was
};

// Two windows of one target, being measured. Times are us of CLOCK_MONOTONIC.
class TargetPair {
  public:
    explicit TargetPair(const Meters& meters) : meters_(meters) {}

    void open(unsigned window, std::uint64_t now);
    // PLANNED: how long the window should have been, in us.
    void close(unsigned window, std::uint64_t now, std::uint64_t planned);
    // The load starved in WINDOW, which ends here.
    void cut(unsigned window, std::uint64_t now);
    [[nodiscard]] bool is_cut(unsigned window) const { return windows_.at(window).cut; }
    // The pair is not to be used: WHY becomes the reason, unless it has one.
    void spoil(const std::string& why);
    // Items that completed since window WINDOW was opened, and for how long, in s; empty where that is not
    // known.
    struct Look {
        double completed = 0;
        double seconds = 0;
    };
    [[nodiscard]] std::optional<Look> look(unsigned window, std::uint64_t now) const;
    // Once work that was queued in the windows had its time to end.
    PairResult finish();

  private:
    struct Window {
        std::uint64_t opened = 0;
        std::uint64_t completed = 0;  // at the opening
        double seconds = 0;
        bool open = false;
        bool cut = false;
        bool late = false;
        std::vector<double> before;  // of the machine's counters, in their order; NaN for the others
        std::vector<double> values;  // of all counters
        WorkCount count;
    };
    double read(const ComparedCounter& counter);
    void end(Window& window, std::uint64_t now, std::uint64_t planned);
    void read_work(unsigned window, PairResult& out);
    [[nodiscard]] bool is_lost(unsigned window) const;
    void take_values(PairResult& out);

    Meters meters_;
    std::array<Window, 2> windows_;
    std::string spoilt_;
};

// The values of a pair by arm: CANDIDATE_FIRST is what the coin chose.
std::vector<std::optional<PairValues>> by_arm(const PairResult& result, bool candidate_first);

// What the guard `others` says of a target with this coin: OTHERS are the differences of the other targets'
// first judged counter, ln(second window's cost) - ln(first window's). Empty: there are no others.
std::optional<PairValues> others_by_arm(const std::vector<double>& others, bool candidate_first);

// ln(second window's cost) - ln(first window's) of the first judged counter, where both are measured.
std::optional<double> difference_in_time(const PairResult& result,
                                         const std::vector<ComparedCounter>& counters);

}  // namespace wq
