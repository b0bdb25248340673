// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ctl/fleet/fleet_line.h"
#include "ctl/options.h"

namespace wq {

// Reduces KEY to the question that a rule answers: without the packages, the kernel's scopes (it is "6.12"),
// topology, scheduler, partitions, tolerance, window, and whether the counter is a guard.
void reduce_to_question(FleetKey& key);

// Adds up the lines of ledgers. The caller passes all lines to take(), and again as long as again() returns
// true; then entries() is complete.
//
// For a host and question the line with the latest `at` counts, once. Refused by take(): a merged line one of
// whose shards overlaps those of an earlier one of its key, or all of them where a shard is asked for, and
// what FleetLineReader refuses. Hosts whose shard a merged line of their question covers do not count:
// covered().
//
// Memory: about 2 kB per key, and a row of about 220 bytes per host and question. Hosts that would need more
// than `most_rows` rows are merged in several rounds, each with those of one bucket.
class FleetMerge {
  public:
    struct Options {
        Shard shard = {};         // lines of other hosts are skipped
        std::int64_t now = 0;     // s since 1970
        std::uint64_t bytes = 0;  // of all lines together
        std::size_t most_rows = 2U << 20U;
    };
    explicit FleetMerge(const Options& options);

    // Returns why LINE does not count, for people; "" if it counts, or is skipped, or was reported earlier.
    std::string take(std::string_view line);
    // A remark about the last line given to take(), which is not refused; "" if there is none.
    [[nodiscard]] const std::string& note() const { return note_; }
    bool again();
    // Sorted by key. Complete after again() returned false, and so is covered().
    [[nodiscard]] std::vector<FleetEntry> entries() const;
    // How many lines of hosts do not count, because a merged line has these hosts already.
    [[nodiscard]] std::uint64_t covered() const { return covered_; }

  private:
    struct Known;
    // The line that counts for a host and question.
    struct Row {
        Known* known = nullptr;
        std::int64_t at = 0;
        HostEvidence own;
    };
    struct Question {
        std::unordered_map<std::uint64_t, Row> rows;  // by hash of the host
        std::set<Shard> covered;                      // by merged lines
    };
    // What is known of a key.
    struct Known {
        const FleetKey* key = nullptr;
        Question* question = nullptr;
        FleetEntry hosts;   // of the earlier buckets
        FleetEntry merged;  // from merged lines
    };

    [[nodiscard]] bool has(std::uint64_t host) const;
    Known& known(const FleetKey& key);
    void take_host_line(const FleetLine& line);
    std::string take_merged_line(const FleetLine& line);

    Options options_;
    FleetLineReader reader_;
    std::uint64_t buckets_ = 1;
    std::uint64_t bucket_ = 0;
    std::uint64_t covered_ = 0;
    bool told_ = false;  // that a line lacks keys
    std::string note_;
    std::map<FleetKey, Question> questions_;
    std::map<FleetKey, Known> known_;
};

// The rows of `fleet show`: pooled over topologies, schedulers, partitions, tolerances and windows.
std::vector<FleetEntry> shown_rows(const std::vector<FleetEntry>& entries);

// The result of a fleet for one class of targets, on machines that a policy's conditions cannot distinguish.
struct FleetRule {
    // The candidates are worse than the kernel's setting, and none is better. Else the candidate of the last
    // entry is better than the kernel's setting, or than an arm that a policy set.
    bool leave = false;
    // One entry per step from arm to arm; of `leave`, all that regressed. Machines have no packages, because
    // there is no condition for them; kernels are series.
    std::vector<FleetEntry> evidence;
    [[nodiscard]] const FleetKey& key() const { return evidence.back().key; }
};

struct FleetRules {
    std::vector<FleetRule> rules;
    std::size_t hypotheses = 0;
};

// The rules that pass e-BH at RATE (0..1). ctl/fleet/promote.cpp explains it.
FleetRules promoted(const std::vector<FleetEntry>& entries, double rate);

// e-BH (Wang and Ramdas, "False discovery rate control with e-values", 2022): which of the m hypotheses whose
// ln e-values are LOGS are rejected, on average at most the share RATE (0..1) of them wrongly. The k largest
// e-values are rejected, for the largest k for which the k-th largest is at least m / (RATE k).
std::vector<bool> e_bh(const std::vector<double>& logs, double rate);

}  // namespace wq

namespace wq::ctl {

struct FleetRead {
    std::vector<FleetEntry> entries;
    bool whole = true;  // no file and no line was refused
};

// Merges the lines of FILES that are in SHARD: "-" is stdin; a directory stands for the files in it, without
// those whose names start with a dot. Prints why it refuses a file or a line, and the notes of FleetMerge.
FleetRead read_fleet(const std::vector<std::string>& files, const Shard& shard = {});

// `history --ledger`: prints the ledger of this host as lines for `fleet merge`, one for each counter of each
// comparison, without those from a time when this machine had another number of CPUs, cores or LLCs. Of two
// that differ only in what a line does not contain (the CPUs of a partition), the newer one.
int history_ledger(const Options& options);

// The name of a host in a fleet, from its machine id (32 hex digits), which it does not reveal: for this
// machine's id what `systemd-id128 machine-id --app-specific=SALT` prints, for one of a tree a hash.
std::string fleet_host_name(const std::string& machine_id);
inline constexpr const char* kFleetSalt = "7c1f3c8bd25f4c0c9a55e07a2a3f8d16";

// "AMD EPYC 9654, x86_64, 96 cores, 8 per LLC, 2 packages"; unknown parts are left out.
std::string machine_text(const FleetMachine& machine);
// "cache -> smt strict", or "smt (policy) -> cpu" if a policy had set the reference.
std::string arms_text(const FleetKey& key);
// "2.3% better".
std::string effect_text(const Pooled& pooled);

// The rules that pass at RATE as one policy drop-in: a host table for each kind of
// machine that was measured, with the evidence of each rule as comments. All expire. NOW: s since 1970.
std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now);

}  // namespace wq::ctl
