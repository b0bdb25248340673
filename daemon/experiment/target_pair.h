// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_counters.h"
#include "evidence/comparison.h"
#include "machine/paths.h"

namespace wq {

// What a pair is measured with.
struct Meters {
    std::vector<ComparedCounter> counters;
    WorkCounters* work = nullptr;  // attached; nullptr if work is not counted here
    unsigned index = 0;            // of the target
    Paths paths;                   // of the machine's counters
    std::uint64_t min_items = 0;   // per window
};

inline constexpr const char* kTooFewItems = "too few items";

// Windows are numbered by their place in time, 0 or 1, so that nothing here can depend on the coin.
struct PairResult {
    std::string drop;              // why the pair is dropped; "" if it counts
    std::optional<unsigned> lost;  // the window that counts against its arm
    // Of each counter, in both windows; empty if it was not measured in both.
    std::vector<std::optional<std::array<double, 2>>> values;
    std::uint64_t items = 0;               // of both windows, with unfinished and lost ones
    std::uint64_t stuck = 0;               // of these, on pools that are no longer the workqueue's
    bool counted = true;                   // false: `items` is incomplete
    std::array<WorkCount, 2> counts = {};  // if the work is counted
};

// Measures the two windows of one target. Times are us of CLOCK_MONOTONIC.
class TargetPair {
  public:
    explicit TargetPair(const Meters& meters) : meters_(meters) {}

    void open(unsigned window, std::uint64_t now);
    // PLANNED: how long the window should have been, in us.
    void close(unsigned window, std::uint64_t now, std::uint64_t planned);
    // Ends WINDOW, because the load starved in it.
    void cut(unsigned window, std::uint64_t now);
    [[nodiscard]] bool counts_work() const { return meters_.work != nullptr; }
    [[nodiscard]] bool is_cut(unsigned window) const { return windows_.at(window).cut; }
    // The pair must not be used. WHY is the reason, unless there is one already.
    void spoil(const std::string& why);
    // Items that completed since WINDOW was opened, and the time since then, in s; empty: not known.
    struct Look {
        double completed = 0;
        double seconds = 0;
    };
    [[nodiscard]] std::optional<Look> look(unsigned window, std::uint64_t now) const;
    // Call when work that was queued in the windows has had its time to end.
    PairResult finish();

  private:
    struct Window {
        std::uint64_t opened = 0;
        std::uint64_t completed = 0;  // at the opening
        double seconds = 0;
        bool open = false;
        bool cut = false;
        bool late = false;
        std::vector<double> before;  // the machine's counters at the opening, in order; NaN for the others
        std::vector<double> values;  // of all counters
        WorkCount count;
    };
    double read(const ComparedCounter& counter);
    void end(Window& window, std::uint64_t now, std::uint64_t planned);
    void read_work(unsigned window, PairResult& out);
    [[nodiscard]] bool lacks_value(unsigned window) const;
    [[nodiscard]] bool is_lost(unsigned window) const;
    void take_values(PairResult& out);

    Meters meters_;
    std::array<Window, 2> windows_;
    std::string spoilt_;
};

// Counts the work of the targets of slots, and looks for traffic between them.
class Counting {
  public:
    struct Attached {
        std::string name;
        ino_t inode = 0;
        friend bool operator==(const Attached&, const Attached&) = default;
    };
    explicit Counting(WorkCounters& counters) : counters_(counters) {}
    ~Counting() { detach(); }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;

    std::string why_not;  // why BPF counts nothing here, until a reload; "" if it counts
    [[nodiscard]] bool works() const { return why_not.empty(); }
    // The programs stay attached as long as TARGETS are attached already, with all that is WANTED. Returns
    // how many of TARGETS are attached: all, or only the first one if not all can be, because the error does
    // not say which one caused it.
    Result<std::size_t> attach(const std::vector<Attached>& targets, Wanted wanted);
    void detach();
    // The meters of target NAME, which is attached. ITEMS: that a window is expected to have.
    [[nodiscard]] Meters meters_of(const std::string& name, double items);
    // Completions per second since the last call, of workqueues with any; empty if that was not 1 to 12 s
    // ago.
    Result<std::optional<std::map<std::string, double>>> rates(std::uint64_t now);
    [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }  // the last call of rates()
    [[nodiscard]] std::string limits() const { return counters_.limits(); }

  private:
    WorkCounters& counters_;
    std::vector<Attached> attached_;                     // by index
    Wanted wanted_;                                      // of the last attach()
    std::map<std::string, WorkCounters::Traffic> seen_;  // at the last look
    std::uint64_t looked_at_ = 0;
};

// The values of a pair by arm: CANDIDATE_FIRST is what the coin chose.
std::vector<std::optional<PairValues>> by_arm(const PairResult& result, bool candidate_first);

// The value of the guard `others` for a target with this coin. OTHERS: the differences of the other targets'
// first judged counter, ln(second window's cost) - ln(first window's). Empty: there are no others.
std::optional<PairValues> others_by_arm(const std::vector<double>& others, bool candidate_first);

// ln(second window's cost) - ln(first window's) of the first judged counter, if both are measured; of a lost
// window ln 3.
std::optional<double> difference_in_time(const PairResult& result,
                                         const std::vector<ComparedCounter>& counters);

}  // namespace wq
