// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/journal.h"
#include "base/result.h"
#include "bpf/work_counters.h"
#include "evidence/comparison.h"
#include "evidence/ledger.h"
#include "policy/policy.h"
#include "state/described.h"
#include "state/state_file.h"

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
    // p50, p90, p95 and p99 of a producer's time in queue_work(), ns, over the pairs since the daemon's
    // start. Only where `enqueue` is judged.
    std::optional<std::array<double, 4>> enqueue_ns = {};
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

// With less, a finer scope can hardly gain by the lock.
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

// The e-value whose logarithm is LOG, at most the largest double.
double evidence_of(double log);

// A comparison by the counter that decided or is nearest to a decision.
struct Standing {
    std::string counter;
    unsigned pairs = 0;        // without dropped ones
    double log_regressed = 0;  // ln of the e-value; evidence_of() converts it for display
    double log_improved = 0;
    Effect effect;
};
nlohmann::json to_json(const Standing& standing);
// COLUMNS: of the comparison; empty if nothing was measured.
Standing standing_of(const Decision& decision, const std::vector<Comparison::Column>& columns);

// The last differences of a counter, as in Comparison::Column.
struct Differences {
    std::string counter;
    bool higher_is_better = false;
    std::vector<double> last = {};  // oldest first
};
// Those of COLUMNS that have any, without guards.
std::vector<Differences> differences_of(const std::vector<Comparison::Column>& columns);

// The name with each run of digits as '#': "kcryptd-254:0-1" -> "kcryptd-#:#-#".
std::string class_of(const std::string& name);

// The reason of a verdict if a scope that is written now does not affect the work.
inline constexpr const char* kStuckReason = "work stays on old pools";

// The reason of a regression that showed only after the candidate was kept.
inline constexpr const char* kWatchReason = "found by the watch";
// The reason of one that the comparison found while the candidate was in force because a rule set it first.
inline constexpr const char* kSetFirstReason = "it was set first";

// A comparison that ended.
struct VerdictRecord {
    LedgerKey key;  // of the comparison in the ledger: the conditions under which the verdict holds
    std::string target;
    std::string cpus;         // of the target, within the unbound mask, as a list
    std::int64_t time = 0;    // s since 1970, when it ended
    unsigned comparison = 1;  // its number among those of the same arms
    // False if it was cut off (CPUs came or went, a policy changed): such a record is not trusted.
    bool judged = true;
    Judgement outcome = Judgement::undecided;
    std::string reason;
    Standing standing;
    JudgeSettings settings;
    std::optional<Contention> contention;  // of the target, as of its last pair; empty: not measured
    std::vector<Differences> differences;  // only in the file
};

// "latency 3.1% worse (1 to 5.2)"; "-" if no pair was measured.
std::string effect_text(const Standing& standing);
// "latency 3.1% worse (1 to 5.2), 9 pairs": what a verdict is based on, for people.
std::string text_of(const Standing& standing);
// "smt against cache: undecided (max_pairs), latency ...".
std::string text_of(const VerdictRecord& record);

// How many of RECORDS took back what was in force, in the calendar month (UTC) of NOW.
std::size_t taken_back_in_month(const std::vector<VerdictRecord>& records, std::int64_t now);

// As in a line of the file and in `wq-tunectl history --json`. Numbers too large become the largest double.
void describe(JsonPlace& at, VerdictRecord& record);
nlohmann::json to_json(const VerdictRecord& record);

// /var/lib/wq-tuned/verdicts.log: a line for each verdict, beside the ledger, whose entries have the number
// of their last one. It decides nothing.
class VerdictStore {
  public:
    explicit VerdictStore(std::string path);

    // Reads the file for whoever only shows it. Without a file the store is empty; so it is after an error.
    Status read();
    // For the daemon, without the differences. A broken file is set aside, and the error says so.
    Status load();
    // Adds the last verdicts of LEDGER that the file lacks: a crash came between the two.
    void complete(const Ledger& ledger);

    // The latest judged verdict on this comparison, however old, or nullptr. The pointer is valid as long as
    // the store exists; add() may replace the record behind it.
    [[nodiscard]] const VerdictRecord* latest(const LedgerKey& key) const;
    // Adds RECORD in memory only, and returns its number; save() writes it.
    std::uint64_t add(VerdictRecord record);
    // Starts to add to the file what is not there yet. What fails is tried again with the next one.
    void save(RecordWriter& record, Log& log);

    [[nodiscard]] const std::string& path() const { return log_.path(); }
    [[nodiscard]] const std::vector<VerdictRecord>& records() const { return records_; }  // oldest first

  private:
    using Lines = std::vector<AppendLog<VerdictRecord>::Line>;
    Status take(Result<Lines> lines);
    void remember(VerdictRecord record);

    AppendLog<VerdictRecord> log_;
    std::vector<VerdictRecord> records_;           // at most kMostRecords
    std::map<std::string, VerdictRecord> latest_;  // the latest judged ones, by LedgerKey::text()
    Lines unsaved_;
    std::uint64_t last_ = 0;  // number
};

}  // namespace wq
