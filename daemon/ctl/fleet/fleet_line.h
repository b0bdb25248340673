// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/fleet/pooled.h"
#include "machine/host_facts.h"

namespace wq {

// A share of all hosts: those for which XXH64 (seed 0) of the name, modulo `of`, is index - 1. 1/1 is all.
struct Shard {
    std::uint32_t index = 1;  // 1..of
    std::uint32_t of = 1;     // at most kMostShards

    [[nodiscard]] bool has(std::uint64_t host_hash) const { return host_hash % of == index - 1; }
    // Whether some host could be in both.
    [[nodiscard]] bool overlaps(const Shard& other) const;
    // Whether each host of this one is in OTHER.
    [[nodiscard]] bool is_within(const Shard& other) const;
    [[nodiscard]] std::string text() const;  // "1/4"
    friend auto operator<=>(const Shard&, const Shard&) = default;
};
inline constexpr std::uint32_t kMostShards = 65'536;

// "I/N", with 1 <= I <= N <= kMostShards.
std::optional<Shard> shard_named(std::string_view text);

// Shards that do not overlap, sorted. All N shards of the same N are stored as 1/1.
class Shards {
  public:
    [[nodiscard]] bool overlaps(const Shard& shard) const;
    // SHARD must not overlap any of them.
    void add(const Shard& shard);
    [[nodiscard]] const std::vector<Shard>& all() const { return shards_; }
    friend bool operator==(const Shards&, const Shards&) = default;

  private:
    std::vector<Shard> shards_;
};

// Follows the scope in the name of an arm whose affinity is strict.
inline constexpr std::string_view kStrictSuffix = " strict";

// What was compared with what, where, and by which counter. Evidence of hosts is pooled if their keys are
// equal. Keys sort in the order of the output.
struct FleetKey {
    FleetMachine machine;
    std::string kernel;            // of the ledger: "6.12 cpu smt cache numa system"
    std::string topology;          // fingerprint
    std::string scheduler;         // sched_ext ops in force, cache-aware scheduling
    std::string kind;              // class of targets: "kcryptd-#:#-#"
    std::string reference;         // an arm by name: "cache", "smt strict"
    std::string reference_origin;  // "kernel": the setting before us; "policy": a setting that we wrote
    std::string candidate;
    std::array<std::uint64_t, 2> partitions{};  // how many pools the arms make
    bool strict = false;                        // whether the candidate is strict
    std::string counter;
    bool guard = false;    // the counter can count against a candidate, never for it
    double tolerance = 0;  // fraction: a cost that is higher by at most this is not called worse
    std::string window;    // window and washout: "2000ms 500ms"
    friend std::partial_ordering operator<=>(const FleetKey&, const FleetKey&) = default;
    friend bool operator==(const FleetKey&, const FleetKey&) = default;
};
struct FleetKeyHash {
    std::size_t operator()(const FleetKey& key) const;
};

// One key's evidence, of all hosts.
struct FleetEntry {
    FleetKey key;
    Pooled pooled;
    std::int64_t at = 0;  // s since 1970: the last pair of any host
    Shards shards;        // the shards of its hosts

    // Adds OTHER, whose key is the same or counts as the same, unless it is empty.
    void add(const FleetEntry& other);
};

// A line of `wq-tunectl history --ledger` (the evidence of one host for a key, with `own` alone), or of
// `fleet merge` (that of many hosts, with `pooled` and `shards`). docs/fleet.md describes the format. Lines
// of another version of the format are refused.
struct FleetLine : FleetEntry {
    std::string host;  // hex digits; "" once merged
    HostEvidence own;
    [[nodiscard]] bool is_merged() const { return host.empty(); }
};

// Reads lines, one after the other, into the same FleetLine.
class FleetLineReader {
  public:
    // Lines whose time is later than NOW + kClockSlack are refused.
    explicit FleetLineReader(std::int64_t now);
    ~FleetLineReader();
    // Reads TEXT into line(). Returns why it is refused; "" if it is not. The reason is safe to print.
    std::string read(std::string_view text);
    [[nodiscard]] const FleetLine& line() const;
    // Whether the line has no "guard". It then counts as a guard's, which makes no rule.
    [[nodiscard]] bool lacks_guard() const { return lacks_guard_; }

  private:
    struct Draft;
    std::int64_t now_;
    std::unique_ptr<Draft> draft_;
    bool lacks_guard_ = false;
};

// The keys of a merged line about single hosts, which lines of other programs may lack.
inline constexpr const char* kByHostKeys =
    "hosts_better, hosts_worse, hosts_below, hosts_above, hosts_after, top_better, top_worse and spread";

inline constexpr std::int64_t kClockSlack = 300;    // s
inline constexpr std::size_t kMostLine = 65'536;    // bytes
inline constexpr std::size_t kLeastHostLine = 350;  // bytes: all keys, with empty values

// The line as JSON; text_of() without a line feed.
nlohmann::ordered_json to_json(FleetLine line);
std::string text_of(const FleetLine& line);

}  // namespace wq
