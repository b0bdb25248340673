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
#include "evidence/e_detector.h"

namespace wq {

// What a comparison holds for. What would make another answer makes another key.
struct LedgerKey {
    std::string kernel;     // x.y and the features that matter to scopes
    std::string topology;   // fingerprint
    std::string scheduler;  // sched_ext ops in force, cache-aware scheduling
    std::string kind;       // class_of() the targets: "kcryptd-#:#-#"
    std::string reference;  // an arm by name: "cache", "smt strict"
    std::string candidate;
    std::string reference_origin;           // "kernel" or "policy"
    std::array<std::string, 2> partitions;  // that the arms really make for these targets
    std::string counters;  // counters and guards with tolerances, and what could not be counted
    std::string window;    // window and washout
    [[nodiscard]] std::string text() const;
    friend bool operator==(const LedgerKey&, const LedgerKey&) = default;
};

// All that is known of one comparison. It goes on after a pause, a stop, a crash or a reboot.
struct LedgerEntry {
    LedgerKey key;
    std::vector<Comparison::Column> columns;
    std::vector<EDetector::State> watch;  // as many as columns, once there is an improvement to watch
    unsigned alarms = 0;                  // of the watch: the n-th comparison may use alpha / 2^(n+1)
    Judgement judgement = Judgement::undecided;
    std::int64_t decided = 0;  // s since 1970; 0 while undecided
    // Pairs by then: a retrial has so many more before it rests again. Of an undecided one: when that was
    // said.
    std::uint64_t decided_pairs = 0;
    std::int64_t updated = 0;  // s since 1970, the last pair
};

// What the (ALARMS + 1)-th comparison of the same arms may use of ALPHA: alpha / 2^(alarms + 1), which adds
// up to alpha over all.
double alpha_after(double alpha, unsigned alarms);

// Every comparison that this host made. Pure: reading and writing its file is the caller's.
class Ledger {
  public:
    static constexpr std::size_t kMostEntries = 1000;

    // Error: not a ledger of this version, or one with numbers that no comparison gives; nothing of it is
    // used.
    static Result<Ledger> from_text(std::string_view text);
    [[nodiscard]] std::string text() const;

    [[nodiscard]] const LedgerEntry* find(const LedgerKey& key) const;
    // Whether there ever was an entry of this class of targets: keys are made for thousands of targets.
    [[nodiscard]] bool knows(const std::string& kind) const { return kinds_.contains(kind); }
    // The entry of ENTRY's key is ENTRY from now on. Beyond kMostEntries the one goes that had no pair for
    // longest: of the undecided without a pair for a day, then of the decided, then of all.
    void put(LedgerEntry entry);
    [[nodiscard]] const std::map<std::string, LedgerEntry>& entries() const { return entries_; }
    // What could not be counted when comparisons were last measured. It is part of their keys, and known only
    // once counters are attached, which is later than the first look at the ledger.
    std::string lacks;

  private:
    std::map<std::string, LedgerEntry> entries_;  // by LedgerKey::text()
    std::set<std::string> kinds_;
};

}  // namespace wq
