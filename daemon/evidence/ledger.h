// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"
#include "evidence/e_process.h"

namespace wq {

// The conditions under which a comparison holds. Everything that can change the result is part of the key.
struct LedgerKey {
    std::string kernel;     // x.y and the features that matter to scopes
    std::string topology;   // fingerprint
    std::string scheduler;  // sched_ext ops in force, cache-aware scheduling
    std::string kind;       // class_of() the targets: "kcryptd-#:#-#"
    std::string reference;  // an arm by name: "cache", "smt strict"
    std::string candidate;
    std::string reference_origin;           // "kernel" or "policy"
    std::array<std::string, 2> partitions;  // that the arms actually make for these targets
    std::string counters;  // counters and guards with tolerances, and what could not be counted
    std::string window;    // window and washout
    [[nodiscard]] std::string text() const;
    friend bool operator==(const LedgerKey&, const LedgerKey&) = default;
};

// All that is known about one comparison. It continues after a pause, a stop, a crash or a reboot.
struct LedgerEntry {
    LedgerKey key;
    std::vector<Comparison::Column> columns;
    std::vector<EDetector::State> watch;  // as many as columns, once there is an improvement to watch
    unsigned alarms = 0;                  // of the watch; after n alarms, alpha / 2^(n+1) may be used
    Judgement judgement = Judgement::undecided;
    std::int64_t decided = 0;  // s since 1970; 0 while undecided
    // Pairs at the decision: a retrial that stays `regressed` rests again after kRetryPairs more. If
    // undecided: pairs when this was reported.
    std::uint64_t decided_pairs = 0;
    std::int64_t updated = 0;  // s since 1970, the last pair
};

// The part of ALPHA that the (ALARMS + 1)-th comparison of the same arms may use: alpha / 2^(alarms + 1). All
// parts add up to alpha.
double alpha_after(double alpha, unsigned alarms);

// Every comparison that this host made. The caller reads and writes its file.
class Ledger {
  public:
    static constexpr std::size_t kMostEntries = 1000;

    // Error: TEXT is not a ledger of this version, or has numbers that no comparison gives.
    static Result<Ledger> from_text(std::string_view text);
    [[nodiscard]] std::string text() const;

    [[nodiscard]] const LedgerEntry* find(const LedgerKey& key) const;
    // Whether there ever was an entry of this class of targets. Saves making the keys of thousands of
    // targets.
    [[nodiscard]] bool knows(const std::string& kind) const { return kinds_.contains(kind); }
    // Adds ENTRY, or replaces the entry with its key. Above kMostEntries, removes the entry whose last pair
    // is the oldest: among the undecided ones without a pair for a day, else among the decided ones, else
    // among all.
    void put(LedgerEntry entry);
    [[nodiscard]] const std::map<std::string, LedgerEntry>& entries() const { return entries_; }
    // What could not be counted when comparisons were last measured. It is part of their keys, but is only
    // known when counters are attached, which is after the ledger is first used.
    std::string lacks;

  private:
    std::map<std::string, LedgerEntry> entries_;  // by LedgerKey::text()
    std::set<std::string> kinds_;
};

}  // namespace wq
