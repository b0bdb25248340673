// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"
#include "machine/paths.h"
#include "policy/judge_settings.h"

namespace wq {

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

// The conditions under which a verdict holds: the same kernel, topology, class of workqueue, arms, settings
// of the judge, and CPUs.
struct VerdictKey {
    std::string kernel;     // release
    std::string topology;   // fingerprint()
    std::string kind;       // class_of() the target's name
    std::string reference;  // the arms, by name: "cache", "smt strict"
    std::string candidate;  //
    std::string judge;      // text_of() the settings
    // The CPUs whose pods were compared: the target's CPUs within the unbound mask, as a list. Together with
    // the topology they determine the partition of each arm.
    std::string cpus = {};
    [[nodiscard]] std::string text() const;
    friend bool operator==(const VerdictKey&, const VerdictKey&) = default;
};

// The name with each run of digits as '#': "kcryptd-254:0-1" -> "kcryptd-#:#-#".
std::string class_of(const std::string& name);

// The reason of a verdict if a scope that is written now does not affect the work.
inline constexpr const char* kStuckReason = "work stays on old pools";

// The reason of a regression that showed only after the candidate was kept.
inline constexpr const char* kWatchReason = "found by the watch";

// A comparison that ended.
struct VerdictRecord {
    VerdictKey key;
    std::string target;
    std::int64_t time = 0;    // s since 1970, when it ended
    unsigned comparison = 1;  // its number among those of the same arms
    // False if it was cut off (CPUs came or went, a policy changed): such a record is not trusted.
    bool judged = true;
    Judgement outcome = Judgement::undecided;
    std::string reason;
    Standing standing;
    JudgeSettings settings;
};

// "latency 3.1% worse (1 to 5.2)"; "-" if no pair was measured.
std::string effect_text(const Standing& standing);
// "latency 3.1% worse (1 to 5.2), 9 pairs": what a verdict is based on, for people.
std::string text_of(const Standing& standing);
// "smt against cache: undecided (max_pairs), latency ...".
std::string text_of(const VerdictRecord& record);

// Whether RECORD is still relied on at NOW (s since 1970): judged, and younger than RETRY_AFTER.
bool is_trusted(const VerdictRecord& record, std::chrono::seconds retry_after, std::int64_t now);

// /var/lib/wq-tuned/verdicts.json: replaced as a whole at each change.
class VerdictStore {
  public:
    explicit VerdictStore(std::string path) : path_(std::move(path)) {}

    // If the file is missing, the store is empty. An error leaves the store empty and the file unchanged.
    Status read();
    // Like read(), for a caller that will also write. A file that is invalid or cannot be read is renamed to
    // PATH.broken, and learning starts anew. The error says so, or why renaming failed. A file that cannot be
    // read is also renamed because the next save() would otherwise fail too, or replace it.
    Status load();

    // The latest judged verdict for this key, however old, or nullptr. The pointer is valid as long as the
    // store exists; add() may replace the record behind it.
    [[nodiscard]] const VerdictRecord* latest(const VerdictKey& key) const;
    // Adds RECORD in memory only; save() writes the file.
    VerdictStore& add(VerdictRecord record);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string text() const;  // content of the file
    // Replaces the content of the file with TEXT and syncs it to disk.
    static Status write(const std::string& path, const std::string& text);
    [[nodiscard]] Status save() const { return write(path_, text()); }

    [[nodiscard]] const std::vector<VerdictRecord>& records() const { return records_; }  // oldest first

  private:
    void forget_one();
    std::string path_;
    std::vector<VerdictRecord> records_;           // at most kMostRecords, see forget_one()
    std::map<std::string, VerdictRecord> latest_;  // the latest judged ones, by VerdictKey::text()
};

// As in the file and in `wq-tunectl history --json`. Numbers too large for JSON are written as the largest
// double.
nlohmann::json to_json(const VerdictRecord& record);

// The readings of a comparison: its used pairs, from the first on. The evidence can be computed from them
// again.
//
// Each comparison has its own file, which is only read to show it. The daemon keeps the file of verdicts in
// memory. In that file, the readings of a thousand comparisons would permanently take 1.8 MB with 16 pairs
// each, and 56 MB with 512 pairs; the limit for an idle daemon is 1 MB.
struct ComparisonReadings {
    static constexpr std::size_t kMost = 512;  // pairs

    std::vector<ComparedCounter> counters;
    std::vector<std::vector<PairValues>> pairs;  // each has one element per counter

    // Ignores pairs after the first kMost.
    void add(std::vector<PairValues> pair);
};

// Readings are kept for this many comparisons, the latest ones. Those that were cut off have a separate
// limit.
inline constexpr std::size_t kMostRead = 200;
inline constexpr std::size_t kMostCutOffRead = 50;

// Writes READINGS to a file of its own below PATHS.readings() and removes the oldest files above the limits.
// Writes nothing if there are no pairs. Does not sync: after a crash of the machine the file may be
// missing or broken.
Status keep_readings(const Paths& paths, const VerdictRecord& record, const ComparisonReadings& readings);

// Reads the readings of RECORD. Errors: ENOENT if none were kept; EBADMSG if the file is not valid.
Result<ComparisonReadings> read_readings(const Paths& paths, const VerdictRecord& record);

// As in the file and in `wq-tunectl history --json`: an element per counter.
nlohmann::json to_json(const ComparisonReadings& readings);

}  // namespace wq
