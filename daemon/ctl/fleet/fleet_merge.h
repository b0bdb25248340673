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

namespace wq {

// Reduces KEY to the question that a rule answers: without the packages, the kernel's scopes (it is "6.12"),
// topology, scheduler, partitions, tolerance, window, and whether the counter is a guard.
void reduce_to_question(FleetKey& key);

// Adds up the lines of ledgers. The caller passes all lines to take(), and again as long as again() returns
// true; then entries() is complete.
//
// For a host and question the line with the latest `at` counts, once. Refused by take(): a merged line one of
// whose shards overlaps those of an earlier one of its key, or all of them where a shard is asked for, and
// what FleetLineReader refuses. Hosts whose
// shard a merged line of their question covers do not count: covered().
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

}  // namespace wq
