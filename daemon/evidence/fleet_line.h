// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/pooled.h"
#include "evidence/shard.h"
#include "machine/host_facts.h"
#include "machine/topology.h"

namespace wq {

// The kind of a machine, as far as a policy's conditions can name it. Empty fields are not known.
struct FleetMachine {
    std::string arch;    // as in uname -m
    std::string vendor;  // of the CPU
    std::string model;   // of the CPU
    std::optional<std::uint64_t> packages;
    std::optional<std::uint64_t> cores;      // online
    std::optional<std::uint64_t> llc_cores;  // of the largest LLC
    friend auto operator<=>(const FleetMachine&, const FleetMachine&) = default;
};
// The kind of the host with FACTS, whose current CPUs are those of TOPOLOGY.
FleetMachine fleet_machine(HostFacts facts, const Topology& topology);

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

// "6.12" for "6.12 cpu smt cache numa system": what a policy's condition on the kernel can name.
std::string series_of(const std::string& kernel);

// A line of `wq-tunectl history --ledger` (the evidence of one host for a key), or of `fleet merge` (the
// evidence of many hosts). docs/fleet.md describes the format. Lines of another version of the format are
// refused.
struct FleetLine {
    FleetKey key;
    std::int64_t at = 0;  // s since 1970: the last pair of any host
    std::string host;     // hex digits; "" once merged
    HostEvidence own;     // of a host's line
    Pooled pooled;        // of a merged line
    Shards shards;        // of a merged line: the shards of its hosts
    [[nodiscard]] bool is_merged() const { return host.empty(); }
};

// Reads lines, one after the other, into the same FleetLine.
class FleetLineReader {
  public:
    // Lines whose time is later than NOW + kClockSlack are refused.
    explicit FleetLineReader(std::int64_t now) : now_(now) {}
    // Reads TEXT into line(). Returns why it is refused; "" if it is not. The reason is safe to print.
    std::string read(std::string_view text);
    [[nodiscard]] const FleetLine& line() const { return line_; }
    // Whether the line has no "guard". It then counts as the line of a guard, because a program that drops
    // this key must not turn a guard's evidence into a rule.
    [[nodiscard]] bool lacks_guard() const { return lacks_guard_; }

  private:
    std::int64_t now_;
    FleetLine line_;
    bool lacks_guard_ = false;
};

inline constexpr std::int64_t kClockSlack = 300;    // s
inline constexpr std::size_t kMostLine = 65'536;    // bytes
inline constexpr std::size_t kLeastHostLine = 350;  // bytes: all keys, with empty values
inline constexpr std::size_t kMostHostDigits = 64;  // of a host's name

// The line as JSON, without a line feed.
std::string text_of(const FleetLine& line);
nlohmann::ordered_json to_json(const FleetMachine& machine);

}  // namespace wq
