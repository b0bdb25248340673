// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ctl/fleet/fleet_line.h"

namespace wq {

// "6.12" for "6.12 cpu smt cache numa system": what a policy's condition on the kernel can name.
std::string series_of(const std::string& kernel);
// Reduces KEY to the question that a rule answers: without the packages, the kernel's scopes, topology,
// scheduler, partitions, tolerance, window, and whether the counter is a guard.
void reduce_to_question(FleetKey& key);

// Adds up the lines of ledgers. The caller passes all lines to take(), and again as long as again() returns
// true; then entries() is complete.
//
// For a host and question the line with the latest `at` counts, once. Refused by take(): lines with the same
// host, key and time but other numbers (two machines with one machine ID: neither counts), a host's line
// whose shard a merged line of its question covers, a merged line one of whose shards overlaps those of an
// earlier one of its key, and what FleetLineReader refuses.
//
// Memory: about 2 kB per key, and a row of about 250 bytes per host and question. Hosts that would need more
// than `most_rows` rows are merged in several rounds, each with those of one bucket. If hosts are cloned or
// covered, one more round names their lines.
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
    // Sorted by key. Complete after again() returned false.
    [[nodiscard]] std::vector<FleetEntry> entries() const;

  private:
    struct Known;
    // The line that counts for a host and question.
    struct Row {
        Known* known = nullptr;
        std::int64_t at = 0;
        HostEvidence own;
        bool cloned = false;  // there are different lines with this time
    };
    struct Question {
        explicit Question(std::pmr::memory_resource* memory) : rows(memory) {}
        std::pmr::unordered_map<std::uint64_t, Row> rows;  // by hash of the host
        std::set<Shard> covered;                           // by merged lines
        // Whether a merged line may include this host.
        [[nodiscard]] bool covers(std::uint64_t host) const;
    };
    // What is known of a key.
    struct Known {
        FleetKey key;
        Question* question = nullptr;
        FleetEntry hosts;   // of the earlier buckets
        FleetEntry merged;  // from merged lines
    };

    [[nodiscard]] bool has(std::uint64_t host) const;
    Known& known(const FleetKey& key);
    std::string what_is_missing(const FleetLine& line);
    std::string take_host_line(const FleetLine& line);
    std::string take_merged_line(const FleetLine& line);
    void keep_newer(Row& row, const Row& seen);

    Options options_;
    FleetLineReader reader_;
    std::uint64_t buckets_ = 1;
    std::uint64_t bucket_ = 0;
    bool names_ = false;       // this round names lines that do not count, and the rows do not change
    bool told_hosts_ = false;  // what_is_missing() has reported it
    bool told_guard_ = false;
    std::string note_;
    std::pmr::unsynchronized_pool_resource memory_;  // of the rows: each bucket uses that of the one before
    std::unordered_map<FleetKey, Question, FleetKeyHash> questions_;
    std::unordered_map<FleetKey, Known, FleetKeyHash> known_;
};

}  // namespace wq
