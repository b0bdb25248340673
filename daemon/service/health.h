// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/journal.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/work_counters.h"
#include "machine/paths.h"

namespace wq {

// Accumulates what the kernel counts of unbound workqueues in sysfs, and of items that held a CPU, from looks
// at it. The first look is only the start value. Pure.
class Health {
  public:
    // Names with a series of their own: the first in the alphabet, as long as they exist. The rest is one
    // series.
    static constexpr std::size_t kMostSeries = 64;
    static constexpr const char* kOthers = "(others)";
    enum Count : std::uint8_t { started, completed, repatriated, maydays, rescued, kCounts };
    using Counts = std::array<std::uint64_t, kCounts>;
    struct Row {
        Counts counts{};       // never fall
        bool rescuer = false;  // without one, there are no maydays
        std::uint64_t in_flight = 0;
        // us since the first look that found items in flight, if none ended since. A write of the scope may
        // begin it anew: what ended on pools that are gone is not known.
        std::uint64_t stalled = 0;
    };

    // CPUS: changes if CPUs went offline or online since the last look. NOW: of WorkCounters::health(). AT:
    // us of CLOCK_MONOTONIC, which stands still while the machine is suspended.
    void add(const std::string& cpus, const std::vector<KernelWorkqueue>& now, std::uint64_t at);

    bool has_looked = false;
    std::map<std::string, Row> rows;
    Row others;
    std::size_t unnamed = 0;  // number of names in `others`
    // Items that held a CPU beyond the kernel's threshold, by the names of managed workqueues, and kOthers.
    std::map<std::string, std::uint64_t> hogs;

  private:
    // A workqueue at the last look. Its name is a hash, because there can be thousands.
    struct Known {
        std::uint64_t address = 0;
        std::size_t name = 0;
        std::uint64_t pools = 0;
        Counts counts{};
        std::uint64_t all_completed = 0;
        std::uint64_t since = 0;  // the look that found items in flight, none of which has ended; 0: none
    };
    void choose_names(const std::vector<KernelWorkqueue>& now);
    [[nodiscard]] const Known* before(const Known& now) const;
    [[nodiscard]] std::uint64_t growth(Count count, const Known& now, bool same_cpus) const;

    std::string cpus_;
    std::vector<Known> known_;  // by address
};

// Looks at it once a minute, and before the daemon's own writes, after which the kernel's counts restart.
// Looks take at most a hundredth of the time: with many workqueues they are rarer, and what was counted
// between the last look and a write is lost.
class HealthWatch {
  public:
    // NOW: CLOCK_MONOTONIC, in us.
    HealthWatch(const Paths& paths, Log& log, std::function<std::uint64_t()> now = monotonic_us)
        : paths_(paths), log_(log), now_(std::move(now)) {}

    // Looks if it is time. Call it at each tick while no windows are measured, and (WRITES) before writes: in
    // the first minute these do nothing, because the daemon's start does not wait for the programs.
    void look(WorkCounters& counters, bool writes);
    void cpus_changed() { changes_++; }  // a CPU went or came: the kernel replaced pools
    [[nodiscard]] const Health& health() const { return health_; }

  private:
    static constexpr std::uint64_t kPeriod = 60 * kSecond;
    static constexpr std::uint64_t kShare = 100;

    const Paths& paths_;
    Log& log_;
    std::function<std::uint64_t()> now_;
    Health health_;
    std::uint64_t changes_ = 0;
    std::uint64_t next_ = 0;                       // when the next look at a tick is due
    std::uint64_t not_before_ = now_() + kPeriod;  // the next look before a write
    std::string error_;                            // last logged
};

}  // namespace wq
