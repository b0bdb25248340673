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
    Shards shards;        // that its hosts are in
};

// Adds up the lines of ledgers. The caller gives all lines to take(), and does so again while again() asks
// for it:
//
//     do {
//         for (each line) print_if_any(merge.take(line));
//     } while (merge.again());
//     use(merge.entries());
//
// Which lines count: of a host and question, the one with the latest `at`. A question is what a rule answers:
// keys of one question differ only in packages, the kernel's scopes, topology, scheduler, partitions,
// tolerance, window, and whether the counter is a guard. A line that is there twice counts once. Two lines of
// one host, key and time with other numbers come from two machines with one machine id (a cloned image): none
// of them counts. A host's line does not count if it is in a shard that a merged line of its question has,
// and neither does a merged line if an earlier one of its key has some of its shard. take() returns each of
// these as an error; so does a line that FleetLineReader refuses.
//
// Memory: about 2 kB for each key, and 24 bytes for each host and question, for its time and hashes. Of the
// latter there are at most `most_rows` at a time, in a table of at most 96 MiB: more hosts are merged in
// several rounds, each of which takes the hosts of one bucket and skips all other lines after a look at the
// host's name. Lines that are repeated cost no memory. Within a round, lines are added as they
// come; only where one turns out to be outdated, cloned or covered is the round repeated, now knowing which
// lines count.
class FleetMerge {
  public:
    struct Options {
        Shard shard = {};         // lines of other hosts are skipped
        std::int64_t now = 0;     // s since 1970
        std::uint64_t bytes = 0;  // of all lines together
        std::size_t most_rows = 3U << 20U;
    };
    explicit FleetMerge(const Options& options);

    // Why LINE does not count, for people; "" if it counts, or is skipped, or was reported earlier.
    std::string take(std::string_view line);
    // What is odd about the line that take() was given last, though it is not refused; "" if nothing. What
    // lines lack is said of the first one only.
    [[nodiscard]] const std::string& note() const { return note_; }
    bool again();
    // Sorted by key. Complete after again() returned false.
    [[nodiscard]] std::vector<FleetEntry> entries() const;

  private:
    // A host and question, and of its lines the one that counts.
    struct Row {
        std::uint64_t id = 0;  // hash of both; 0: free
        std::uint32_t at = 0;
        std::uint32_t key = 0;       // a hash; of lines of one time the one with the largest counts
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
    bool told_hosts_ = false;  // what_is_missing() said so
    bool told_guard_ = false;
    std::string key_;           // text of the line's key
    std::size_t question_ = 0;  // bytes of it
    std::string note_;
    std::vector<Row> rows_;
    std::size_t used_ = 0;
    Entries round_;                                             // hosts of this bucket
    Entries hosts_;                                             // of the earlier buckets
    Entries merged_;                                            // from merged lines
    std::unordered_map<std::string, std::set<Shard>> covered_;  // by question: shards of merged lines
};

}  // namespace wq
