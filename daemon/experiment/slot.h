// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evidence/verdicts.h"
#include "experiment/scheduler.h"
#include "experiment/target_pair.h"
#include "state/state_file.h"
#include "targets/slot_writer.h"

namespace wq {

// Times of a slot, in us.
struct SlotTimes {
    std::uint64_t lead = 500'000;  // the second window's arm is in place, then the first one's is written
    std::uint64_t window = 2'000'000;
    std::uint64_t washout = 500'000;  // the first part of a window, from the return of its last write
    std::uint64_t look = 300'000;     // after the begin of the counted part
    std::uint64_t drain = 500'000;    // time for work that was queued in the second window to end
    [[nodiscard]] std::uint64_t counted() const { return window - washout; }
};

// Every fourth pair of the watch is long: effects such as dirty throttling take longer than two seconds.
SlotTimes times_of_slot(const Judging& judge, std::uint64_t window, bool is_long);

enum class SlotAction : std::uint8_t { put, open, look, close, finish };

// The next action. Windows are numbered by their place in time, 0 or 1.
struct SlotStep {
    SlotAction action;
    unsigned window;
    std::uint64_t SlotTimes::*wait = nullptr;  // until the next action; nullptr: none, or see done()
};

// The clock of a slot:
//
//   put 1 | lead | put 0 | washout | open 0 | look 0 | close 0 | put 1 | washout | open 1 | look 1 | close 1
//   | drain | finish
//
// Both windows begin with a change from the other arm, so that neither finds warm pools, as it would if the
// arm in place were written again. Pure: the caller reports when each action has returned. Times are us of
// CLOCK_MONOTONIC.
class SlotClock {
  public:
    // The first action is due at NOW.
    SlotClock(const SlotTimes& times, std::uint64_t now) : times_(times), due_(now) {}

    [[nodiscard]] const SlotStep& next() const;
    [[nodiscard]] std::uint64_t due() const { return due_; }
    // Call when the action has returned, at NOW.
    void done(std::uint64_t now);
    [[nodiscard]] const SlotTimes& times() const { return times_; }

  private:
    SlotTimes times_;
    std::size_t step_ = 0;
    std::uint64_t due_;
    std::uint64_t opened_ = 0;
};

// How many targets take part, and for how long.
struct SlotSize {
    std::size_t targets = 0;
    std::uint64_t window = 0;  // us
};
inline constexpr std::uint64_t kLongestWindow = 10'000'000;  // us, for a single target whose writes are slow

// The size of a slot in which the writes of a window take at most 1% of it. WRITES: us that one write of each
// target takes, in the order in which they would take part; at most MOST do. If a single target takes longer,
// it gets a longer window, up to kLongestWindow.
SlotSize size_of_slot(const std::vector<std::uint64_t>& writes, std::uint64_t window, std::size_t most);

// The coins of the slot in progress, in /run before its first write. If the daemon is killed, the next one
// reads which arm ran, and counts the window against it.
struct Coins {
    struct Member {
        std::string target;
        std::string comparison;        // LedgerKey::text()
        bool candidate_first = false;  // what the coin chose
    };
    std::uint64_t slot = 0;  // when it began, us of CLOCK_MONOTONIC: none has the number of another
    std::vector<Member> members;
    std::optional<unsigned> running;  // the window whose arms are in place or being written: 0 or 1
};
void describe(JsonPlace& at, Coins& coins);
// PATH is in /run (a tmpfs), like the baseline, so it does not wait for a disk.
StateFile<Coins> coins_file(const std::string& path);

// The side whose arm a target has in WINDOW.
inline Side side_in(unsigned window, bool candidate_first) {
    return (window == 0) == candidate_first ? Side::candidate : Side::reference;
}

struct ExperimentEdges {
    Targets& targets;
    Engine& engine;
    SlotWriter& writer;
    OrderBook& book;
    LedgerFile& ledger;
    WorkCounters& counters;
    VerdictStore& verdicts;  // the history of verdicts; it decides nothing
    RecordWriter& record;
    Log& log;
    Paths paths;
    HostClock clock;
};

// A target that takes part in a slot, or whose order ends.
struct Member {
    Taker taker;
    std::string cpus;
    ino_t inode = 0;
    bool candidate_first = false;
    std::optional<TargetPair> pair;
    std::optional<unsigned> in_place;  // the window whose arm was last written
    double rate = 0;                   // completions per s in the first window, when it was looked at
    bool left = false;
    [[nodiscard]] Side side(unsigned window) const { return side_in(window, candidate_first); }
    [[nodiscard]] const Arm& arm(unsigned window) const {
        return side(window) == Side::candidate ? taker.arms.candidate : taker.arms.reference;
    }
};
Member member_of(const Taker& taker, const Targets& targets);

// The slot that runs. Each of its targets has a pair of windows, whose order its own coin decides.
class SlotRun {
  public:
    // OURS: the daemon caused it, so the window that is cut off counts against its arm.
    struct Left {
        const Member* member;
        std::string why;
        bool ours = false;
    };
    struct Done {
        const Member* member;
        PairResult result;
        std::vector<double> others;  // differences in time of the slot's other targets
    };

    // MEMBERS have entered the slot (SlotWriter::enter()). Draws their coins.
    SlotRun(const ExperimentEdges& edges, Counting& counting, std::vector<Member> members,
            const SlotTimes& times);
    SlotRun(const SlotRun&) = delete;  // Left and Done point to the members
    SlotRun& operator=(const SlotRun&) = delete;

    [[nodiscard]] std::uint64_t due() const { return clock_.due(); }
    [[nodiscard]] const SlotTimes& times() const { return clock_.times(); }
    [[nodiscard]] const std::vector<Member>& members() const { return members_; }
    [[nodiscard]] std::uint64_t number() const { return coins_.slot; }
    // The member that has not left; nullptr if there is none.
    [[nodiscard]] const Member* member(const std::string& name) const;
    // Whether the last action was done, or all targets have left.
    [[nodiscard]] bool is_over() const;
    // Each of these returns who left. DONE gets the results of the last action.
    [[nodiscard]] std::vector<Left> act(std::vector<Done>& done);
    // Targets whose conditions do not hold any more leave.
    [[nodiscard]] std::vector<Left> check();
    [[nodiscard]] std::vector<Left> leave_all(const std::string& why);
    // No pair of it counts.
    void spoil(const std::string& why);

  private:
    void put(unsigned window);
    void put_failed(Member& member, const Outcome& outcome);
    void look_into(unsigned window);
    void cut(Member& member, unsigned window);
    void finish(std::vector<Done>& done);
    void leave(Member& member, const std::string& why, bool ours = false);
    [[nodiscard]] std::string why_spoilt() const;
    [[nodiscard]] std::optional<No> why_leave(const Member& member) const;
    bool stays(Member& member);

    const ExperimentEdges& edges_;
    std::vector<Member> members_;
    SlotClock clock_;
    Coins coins_;
    CpuSet online_;
    Clocks clocks_;
    CpuTimes cpu_times_;
    std::string spoilt_;  // why no pair counts; "" if they count
    std::vector<Left> left_;
    bool finished_ = false;
};

}  // namespace wq
