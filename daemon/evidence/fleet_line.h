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
#include "model/host_facts.h"
#include "model/topology.h"

namespace wq {

// The kind of a machine, as far as a policy's conditions can name it. What is empty is not known.
struct FleetMachine {
    std::string arch;    // as in uname -m
    std::string vendor;  // of the CPU
    std::string model;   // of the CPU
    std::optional<std::uint64_t> packages;
    std::optional<std::uint64_t> cores;      // online
    std::optional<std::uint64_t> llc_cores;  // of the largest LLC
    friend auto operator<=>(const FleetMachine&, const FleetMachine&) = default;
};
// What the host of FACTS, whose CPUs are now those of TOPOLOGY, is in a fleet.
FleetMachine fleet_machine(HostFacts facts, const Topology& topology);

// What was compared with what, where, and by which counter. Evidence of hosts is pooled where all of it is
// equal. The order is that of the output.
struct FleetKey {
    FleetMachine machine;
    std::string kernel;            // of the ledger: "6.12 cpu smt cache numa system"
    std::string topology;          // fingerprint
    std::string scheduler;         // sched_ext ops in force, cache-aware scheduling
    std::string kind;              // class of targets: "kcryptd-#:#-#"
    std::string reference;         // an arm by name: "cache", "smt strict"
    std::string reference_origin;  // "kernel": what it had before us; "policy": what we put there
    std::string candidate;
    std::array<std::uint64_t, 2> partitions{};  // how many pools the arms make
    bool strict = false;                        // the candidate is
    std::string counter;
    bool guard = false;    // the counter can count against a candidate, never for it
    double tolerance = 0;  // fraction: a cost that is higher by at most this is not called worse
    std::string window;    // window and washout: "2000ms 500ms"
    friend std::partial_ordering operator<=>(const FleetKey&, const FleetKey&) = default;
    friend bool operator==(const FleetKey&, const FleetKey&) = default;
};

// "6.12" for "6.12 cpu smt cache numa system": what a policy's condition on the kernel can name.
std::string series_of(const std::string& kernel);

// A line of `wq-tunectl history --ledger` (what one host knows of a key), or of `fleet merge` (what many
// know). docs/fleet.md describes the format. It has a version; a line of another one is not read.
struct FleetLine {
    FleetKey key;
    std::int64_t at = 0;  // s since 1970: the last pair, the latest of all hosts
    std::string host;     // hex digits; "" once merged
    HostEvidence own;     // of a host's line
    Pooled pooled;        // of a merged line
    Shards shards;        // of a merged line: which hosts it may have
    [[nodiscard]] bool is_merged() const { return host.empty(); }
};

// Reads lines, one after the other, into the same FleetLine.
class FleetLineReader {
  public:
    // Lines whose time is later than NOW + kClockSlack are refused.
    explicit FleetLineReader(std::int64_t now) : now_(now) {}
    // Why TEXT is refused; "" if line() is what it says. The reason may be printed.
    std::string read(std::string_view text);
    [[nodiscard]] const FleetLine& line() const { return line_; }
    // Whether it has no "guard". It is one of a guard then: a program that drops this key must not make a
    // rule of what only guards.
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
