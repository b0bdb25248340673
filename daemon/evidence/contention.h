// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bpf/work_counters.h"
#include "state/described.h"

namespace wq {

// What explains a verdict, but decides none: how long the work of a target waited for pool->lock under an
// arm, and how many pools and kworkers it had. Empty: not seen, or not known.
struct ArmWork {
    // ns of an item above the lowest wait of this host, which has the cost of our own probe and of a free
    // lock in it; a mean over about the last eight pairs.
    std::optional<double> lock_ns;
    std::optional<double> lock_percent;  // the same, of latency
    // At the end of the last window, as in WorkCount.
    std::optional<unsigned> pools, workers;
};
struct Contention {
    ArmWork reference, candidate;
};
void describe(JsonPlace& at, Contention& contention);
nlohmann::json to_json(const std::optional<Contention>& contention);
// As to_json() writes it; empty for null, and for what is none.
std::optional<Contention> contention_in(nlohmann::json json);

// "lock wait 14% of latency -> 0.3%, pools 2 -> 12, kworkers 9 -> 31", from the reference to the candidate.
std::string text_of(const Contention& contention);
// "14% of latency under cache (1200 ns an item), 0.3% under smt (20 ns)", and whether the lock matters.
std::string lock_text(const Contention& contention, const std::string& reference,
                      const std::string& candidate);
// "2 with 9 kworkers under cache, 12 with 31 under smt"; "" if not known.
std::string pools_text(const Contention& contention, const std::string& reference,
                       const std::string& candidate);

// Below this, a finer scope can hardly gain by the lock.
inline constexpr double kLeastLockPercent = 1;

// The work of one target under two arms that it compares, as of its last pairs. In memory only: after a
// restart of the daemon, kworkers are others.
class WorkSeen {
  public:
    // Counts of a pair.
    void add(const WorkCount& reference, const WorkCount& candidate);
    // LOWEST: ns, see lowest_lock() in evidence/ledger.h. Call after add().
    [[nodiscard]] Contention above(double lowest) const;

  private:
    bool begins_ = true;
    std::array<WorkCount, 2> means_;
};

}  // namespace wq
