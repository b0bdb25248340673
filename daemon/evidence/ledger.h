// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "base/result.h"
#include "evidence/comparison.h"
#include "state/described.h"
#include "state/state_file.h"

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

// The pairs of a counter that were measured while the candidate was in force for another reason than they:
// those after the verdict `improved`, or all since the candidate was set first, or was kept because it
// improved on another arm. So they tell what it is worth; those that decided lean upwards.
struct AfterVerdict : DifferenceSums {
    std::int64_t first = 0;  // s since 1970
    std::int64_t last = 0;
    friend bool operator==(const AfterVerdict&, const AfterVerdict&) = default;
};

// All that is known about one comparison. It continues after a pause, a stop, a crash or a reboot.
struct LedgerEntry {
    LedgerKey key;
    std::vector<Comparison::Column> columns;
    std::vector<EDetector> watch;  // as many as columns, once there is an improvement to watch
    // As many as columns, those of guards empty, once there is such a pair. Cleared by `regressed`, and
    // when another arm improves on the candidate.
    std::vector<AfterVerdict> after;
    unsigned alarms = 0;  // of the watch; after n alarms, alpha / 2^(n+1) may be used
    Judgement judgement = Judgement::undecided;
    std::int64_t decided = 0;  // s since 1970; 0 while undecided
    // Pairs at the decision: a retrial that stays `regressed` rests again after kRetryPairs more. If
    // undecided: pairs when this was reported.
    std::uint64_t decided_pairs = 0;
    std::int64_t updated = 0;  // s since 1970, the last pair
    std::uint64_t number = 0;  // of its last verdict in verdicts.log; 0: none
    // Of all its windows: the shortest mean wait of an item for pool->lock, ns; empty: not seen.
    std::optional<double> lowest_lock;
};

// The part of ALPHA that the (ALARMS + 1)-th comparison of the same arms may use: alpha / 2^(alarms + 1). All
// parts add up to alpha.
double alpha_after(double alpha, unsigned alarms);

// Pairs of the counter that has most of them.
std::uint64_t pairs_of(const LedgerEntry& entry);

// Every comparison that this host made.
class Ledger {
  public:
    static constexpr std::size_t kMostEntries = 1000;

    [[nodiscard]] const LedgerEntry* find(const LedgerKey& key) const;
    // Whether there ever was an entry of this class: saves making the keys of thousands of targets.
    [[nodiscard]] bool knows(const std::string& kind) const { return kinds_.contains(kind); }
    // Adds ENTRY, or replaces the entry with its key. Above kMostEntries, another one whose last pair is the
    // oldest gives way.
    void put(LedgerEntry entry);
    [[nodiscard]] const std::map<std::string, LedgerEntry>& entries() const { return entries_; }
    // What could not be counted when comparisons were last measured. It is part of their keys, but is only
    // known when counters are attached, which is after the ledger is first used.
    std::string lacks;
    // The lowest LedgerEntry::lowest_lock under the kernel and topology of KEY: about what a free lock costs
    // here, with our own probe. It is in the ledger because the first pairs after a restart may all be of
    // targets whose lock is not free. ns; 0: none was seen.
    [[nodiscard]] double lowest_lock(const LedgerKey& key) const;

  private:
    std::map<std::string, LedgerEntry> entries_;  // by LedgerKey::text()
    std::set<std::string> kinds_;
};

// Their form in files, see state/described.h.
void describe(JsonPlace& at, Judgement& judgement);
void describe(JsonPlace& at, LedgerKey& key);
void describe(JsonPlace& at, Ledger& ledger);

// A name of a workqueue need not be UTF-8. A thousand entries of eight counters take 20 MB.
inline constexpr StateRules kLedgerRules{.limit = 64U << 20, .may_replace_bytes = true};

// Entries that the ledger's file does not have yet, and the last slot whose pairs they have.
struct UnsavedPairs {
    std::uint64_t slot = 0;  // as in Coins
    Ledger ledger;
};
void describe(JsonPlace& at, UnsavedPairs& pairs);

// The ledger and its file. The file is read once, and replaced outside of the event loop, because its disk
// may not answer. The entries since then are in a file in /run, beside the coins: a kill loses no pair, a
// power loss those of a minute at most.
class LedgerFile {
  public:
    LedgerFile(std::string path, std::string pairs, RecordWriter& record, Log& log)
        : file_(std::move(path), kLedgerRules),
          pairs_(std::move(pairs), kLedgerRules),
          record_(record),
          log_(log) {}

    // A broken file is set aside, and logged; the ledger is empty then. A file that cannot be read (an error
    // of the disk) is never replaced.
    void load();

    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    void put(LedgerEntry entry);
    void lack(const std::string& what);  // Ledger::lacks
    // Writes what the file lacks to /run. SLOT: the last one whose pairs are in the ledger.
    void keep(std::uint64_t slot);
    // Whether the pairs of SLOT were kept before a restart.
    [[nodiscard]] bool has(std::uint64_t slot) const { return slot != 0 && slot == slot_; }
    // Starts to write the file, if the ledger changed or the last save failed. NOW: us.
    void save(std::uint64_t now);
    // Like save(), at most once a minute.
    void save_in_time(std::uint64_t now);
    // Why the ledger cannot be saved: it could not be read, the last save failed, or a save has not ended for
    // 2 s. "" if it can.
    [[nodiscard]] std::string why_not(std::uint64_t now) const;

  private:
    void take_unsaved();
    void saved(std::uint64_t number, const Status& done);

    StateFile<Ledger> file_;
    StateFile<UnsavedPairs> pairs_;
    RecordWriter& record_;
    Log& log_;
    Ledger ledger_;
    std::map<std::string, std::uint64_t> unsaved_;  // keys of entries, with the save that has them
    std::uint64_t slot_ = 0;
    bool changed_ = false;
    std::uint64_t saves_ = 0;                    // number of saves started
    std::uint64_t saved_at_ = 0;                 // time of the last one
    std::optional<std::uint64_t> saving_since_;  // start of the first one that has not ended
    std::string error_;                          // of the last one that has ended
    std::string pairs_error_;                    // of the last keep()
};

}  // namespace wq
