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

#include "evidence/fleet_line.h"

namespace wq {

// One key's evidence, of all hosts.
struct FleetEntry {
    FleetKey key;
    Pooled pooled;
    std::int64_t at = 0;  // s since 1970: the last pair of any host
    Shards shards;        // the shards of its hosts
};

// Adds up the lines of ledgers. The caller passes all lines to take(), and repeats this as long as again()
// returns true:
//
//     do {
//         for (each line) print_if_any(merge.take(line));
//     } while (merge.again());
//     use(merge.entries());
//
// Which lines count: for a host and question, the line with the latest `at`. A question is what a rule
// answers: keys of one question differ only in packages, the kernel's scopes, topology, scheduler,
// partitions, tolerance, window, and whether the counter is a guard. A line that occurs twice counts once.
// Two lines with the same host, key and time but different numbers come from two machines with the same
// machine ID (a cloned image): neither counts. A host's line does not count if a merged line of its question
// covers the host's shard. A merged line does not count if one of its shards overlaps those of an earlier
// merged line of its key. take() returns an error for such cloned, covered and overlapping lines, and for
// lines that FleetLineReader refuses.
//
// Memory: about 2 kB per key, and a row of 24 bytes per host and question, for its time and hashes. There are
// at most `most_rows` rows at a time, in a table of at most 96 MiB. More hosts are merged in several rounds.
// Each round takes the hosts of one bucket and skips all other lines after it has read the host's name.
// Repeated lines need no memory. Within a round, lines are added as they come. If a line turns out to be
// outdated, cloned or covered, the round is repeated, now knowing which lines count.
class FleetMerge {
  public:
    struct Options {
        Shard shard = {};         // lines of other hosts are skipped
        std::int64_t now = 0;     // s since 1970
        std::uint64_t bytes = 0;  // of all lines together
        std::size_t most_rows = 3U << 20U;
    };
    explicit FleetMerge(const Options& options);

    // Returns why LINE does not count, for people; "" if it counts, or is skipped, or was reported earlier.
    std::string take(std::string_view line);
    // A remark about the last line given to take(), which is not refused; "" if there is none. Missing keys
    // are only reported for the first line that lacks them.
    [[nodiscard]] const std::string& note() const { return note_; }
    bool again();
    // Sorted by key. Complete after again() returned false.
    [[nodiscard]] std::vector<FleetEntry> entries() const;

  private:
    // The line that counts for a host and question.
    struct Row {
        std::uint64_t id = 0;  // hash of both; 0: free
        std::uint32_t at = 0;
        std::uint32_t key = 0;       // a hash; of lines with the same time, the largest one counts
        std::uint32_t numbers = 0;   // a hash, see kCloned
        std::uint32_t progress = 0;  // alarms and pairs
    };
    using Entries = std::unordered_map<std::string, FleetEntry>;  // by text of the key

    [[nodiscard]] bool skips(std::string_view line) const;
    std::string what_is_missing(const FleetLine& line);
    std::string take_host_line(const FleetLine& line);
    std::string take_merged_line(const FleetLine& line);
    bool scan(const Row& row);
    void count(const FleetLine& line);
    [[nodiscard]] bool is_covered(std::uint64_t host) const;
    [[nodiscard]] std::string_view question() const { return std::string_view(key_).substr(0, question_); }
    Row& row_of(std::uint64_t id);
    void grow();
    void end_round();

    Options options_;
    FleetLineReader reader_;
    std::uint64_t buckets_ = 1;
    std::uint64_t bucket_ = 0;
    bool repeats_ = false;     // this round is the second one of its bucket
    bool wrong_ = false;       // what the first round added must be added again
    bool told_hosts_ = false;  // what_is_missing() has reported it
    bool told_guard_ = false;
    std::string key_;           // text of the line's key
    std::size_t question_ = 0;  // length of the question in it
    std::string note_;
    std::vector<Row> rows_;
    std::size_t used_ = 0;
    Entries round_;                                             // hosts of this bucket
    Entries hosts_;                                             // of the earlier buckets
    Entries merged_;                                            // from merged lines
    std::unordered_map<std::string, std::set<Shard>> covered_;  // by question: shards of merged lines
};

}  // namespace wq
