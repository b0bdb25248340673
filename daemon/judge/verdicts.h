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
#include "judge/trial.h"

namespace wq {

// What a verdict holds for: the same kernel, topology, class of workqueue, arms, settings of the judge, and
// CPUs.
struct VerdictKey {
    std::string kernel;     // release
    std::string topology;   // fingerprint()
    std::string kind;       // class_of() the target's name
    std::string baseline;   // the arms, by name: "cache", "smt strict"
    std::string candidate;  //
    std::string judge;      // text_of() the settings
    // The CPUs whose pods were compared: the target's within the unbound mask, as a list. With the topology
    // they say what partition each arm makes. "" in records of versions that did not look: those hold for no
    // target any more.
    std::string cpus = {};
    [[nodiscard]] std::string text() const;
    friend bool operator==(const VerdictKey&, const VerdictKey&) = default;
};

// The name with each run of digits as '#': "kcryptd-254:0-1" -> "kcryptd-#:#-#".
std::string class_of(const std::string& name);

// The reason of a verdict that says that a scope written now does not reach the work.
inline constexpr const char* kStuckReason = "work stays on old pools";

// The reason of a regression that showed only after the candidate was kept.
inline constexpr const char* kWatchReason = "found by the watch";

// A trial that ended.
struct VerdictRecord {
    VerdictKey key;
    std::string target;
    std::int64_t time = 0;  // s since 1970, when it ended
    unsigned trial = 1;     // which of these arms' trials it was
    // Only these are trusted. A trial that was cut off (CPUs came or went, a policy changed) says nothing.
    bool judged = true;
    TrialOutcome outcome = TrialOutcome::inconclusive;
    std::string reason;
    Standing standing;
    std::optional<JudgeSettings> settings;  // of this very trial; of older versions' records, none
    unsigned dropped = 0;                   // pairs
    std::uint64_t lost = 0;                 // items that were not counted, in all windows
};

// "latency +3.1% (+1.0..+5.2)"; "-" where no pair was measured.
std::string effect_text(const Standing& standing);
// "latency +3.1% (+1.0..+5.2), 9 pairs": what a verdict rests on, for people.
std::string text_of(const Standing& standing);
// "smt against cache: undecided (max_pairs), latency ...".
std::string text_of(const VerdictRecord& record);

// Whether RECORD is still relied on at NOW (s since 1970): judged, and younger than RETRY_AFTER.
bool is_trusted(const VerdictRecord& record, std::chrono::seconds retry_after, std::int64_t now);

// /var/lib/wq-tuned/verdicts.json: replaced as a whole at each change.
class VerdictStore {
  public:
    explicit VerdictStore(std::string path) : path_(std::move(path)) {}

    // Absent file: nothing learned yet. An error leaves the store empty, and the file as it is.
    Status read();
    // As read(), for who will write: a file that cannot be understood is renamed to PATH.broken, and
    // learning starts anew; the error says so, or why even that failed. So is one that cannot be read: the
    // next save() would otherwise fail too, or replace it.
    Status load();

    // The latest verdict that counts for this key, however old, or nullptr. It stays where it is until the
    // store goes; add() may make a later one of it.
    [[nodiscard]] const VerdictRecord* latest(const VerdictKey& key) const;
    // What the store knows from now on; save() keeps it.
    VerdictStore& add(VerdictRecord record);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string text() const;  // of the file
    // Makes the file hold TEXT, on disk when it returns.
    static Status write(const std::string& path, const std::string& text);
    [[nodiscard]] Status save() const { return write(path_, text()); }

    [[nodiscard]] const std::vector<VerdictRecord>& records() const { return records_; }  // oldest first

  private:
    void forget_one();
    std::string path_;
    std::vector<VerdictRecord> records_;           // at most kMostRecords; who gives way: forget_one()
    std::map<std::string, VerdictRecord> latest_;  // the latest judged ones, by VerdictKey::text()
};

// As in the file and in `wq-tunectl history --json`. Numbers that JSON cannot hold are the largest that it
// can.
nlohmann::json to_json(const VerdictRecord& record);

}  // namespace wq
