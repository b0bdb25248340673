// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/comparison.h"
#include "machine/host_facts.h"

namespace wq {

// How much more the effects of hosts differ than the noise of each host explains. Adding works in any order.
struct Spread {
    // The mean difference of a host, and its weight: 1 / its variance. No host: weight 0.
    struct Host {
        double mean = 0;
        double weight = 0;
        friend auto operator<=>(const Host&, const Host&) = default;
    };
    std::uint64_t hosts = 0;
    double weight = 0;          // sum of the weights
    double weight_squares = 0;  // of weight^2
    double sum = 0;             // of weight * mean
    double squares = 0;         // of weight * mean^2
    Host least;                 // the host with the lowest mean
    Host most;                  // with the highest

    // A host whose PAIRS differences have this SUM and these SQUARES. With fewer than 8 it is left out.
    static Spread of_host(std::uint64_t pairs, double sum, double squares);
    void add(const Spread& other);
    // Standard deviation between hosts (DerSimonian and Laird, 1986), 0 if noise explains it all.
    [[nodiscard]] double deviation() const;
    // Whether hosts differ more than by chance alone in 80% of the cases (Cochran's Q); of 8 hosts or more,
    // also without the most unusual one. False for fewer than 3.
    [[nodiscard]] bool is_visible() const;
    friend bool operator==(const Spread&, const Spread&) = default;
};

// The evidence of one host's ledger for one counter of one comparison.
struct HostEvidence {
    std::uint64_t alarms = 0;  // of the watch; each restarted the comparison
    std::uint64_t pairs = 0;
    StakeLogs better{};  // ln of the e-values of "the candidate costs less", by stake
    StakeLogs worse{};
    double sum = 0;             // of the differences d
    double squares = 0;         // of d * d
    DifferenceSums after = {};  // of the pairs in AfterVerdict
    friend auto operator<=>(const HostEvidence&, const HostEvidence&) = default;
};

// One direction of the combined evidence: the candidate is better, or it is worse.
struct PooledSide {
    StakeLogs sums{};         // of the hosts' shares
    StakeLogs top{};          // the largest share of one host, by stake, at least 0
    std::uint64_t hosts = 0;  // whose own evidence is enough, see kHostEvidence
    std::uint64_t votes = 0;  // hosts whose sum is a gain, however small, or harm beyond the tolerance

    // ln of the pooled e-value, the mean over the stakes.
    [[nodiscard]] double log() const { return log_mean(sums); }
    // The same without the largest share of each stake, if known. At most log(), and at most the value
    // without any single host.
    [[nodiscard]] double log_without_one() const;
    friend bool operator==(const PooledSide&, const PooledSide&) = default;
};

// The combined evidence of many hosts. ctl/fleet/pooled.cpp explains it. Adding is associative and
// commutative, up to the rounding of doubles. Adding Pooled{} changes nothing.
struct Pooled {
    std::uint64_t hosts = 0;
    std::uint64_t alarms = 0;
    std::uint64_t pairs = 0;
    PooledSide better;
    PooledSide worse;
    double sum = 0;
    double squares = 0;
    Spread spread;
    // Whether the results of single hosts are known: the spread, hosts_after, and all of a side but the sums.
    // If not, these are 0. Merged lines of other programs may lack them.
    bool by_host = true;
    std::uint64_t hosts_after = 0;  // with pairs in `after`: the candidate was in force then
    DifferenceSums after = {};      // of these hosts

    // The sum has the results of single hosts if both have them.
    void add(const Pooled& other);
    // Marks the results of single hosts as not known.
    void forget_hosts();
    // What a rule may use of SIDE: the evidence without one host, but at most a factor of 8 for each host but
    // one, and if hosts visibly differ at most that of their votes. 0 for fewer than kLeastHosts, and if the
    // results of single hosts are not known.
    [[nodiscard]] double log_for_rule(const PooledSide& side) const;
    // exp(mean of d) - 1 in percent: above zero is worse. 0 without pairs.
    [[nodiscard]] double effect_percent() const;
    friend bool operator==(const Pooled&, const Pooled&) = default;
};

// TOLERANCE of the counter: fraction, 0..1.
Pooled pooled(const HostEvidence& host, double tolerance);

// The e-value with the natural logarithm LOG: "0.031", "14.2", "3.0e+12". It may be too large for a double.
std::string e_text(double log);
// How hosts differ: the deviation between them, and how many are better or worse by their own evidence:
// "0.35%; 12 better, 0 worse"; "MIXED: 2.10%; 40 better, 35 worse" if both are many; "not known" if a merged
// line lacks these numbers.
std::string spread_text(const Pooled& pooled);

// A host's share in the pool for a stake whose e-value E has this logarithm: ln(0.1 + 0.9 min(E, 1000)).
double share_of(double log_e);

// A host counts as better, or worse, if its own e-value reaches this. By chance alone, at most one host in
// twenty does.
inline constexpr double kHostEvidence = 20;
inline constexpr std::uint64_t kLeastHosts = 4;

// Whether SOME of ALL hosts are too many to be passed over: more than one, and more than 5%.
inline bool are_many(std::uint64_t some, std::uint64_t all) {
    return some > 1 && static_cast<double>(some) > 0.05 * static_cast<double>(all);
}

// A share of all hosts: those for which XXH64 (seed 0) of the name, modulo `of`, is index - 1. 1/1 is all.
struct Shard {
    std::uint32_t index = 1;  // 1..of
    std::uint32_t of = 1;     // at most kMostShards

    [[nodiscard]] bool has(std::uint64_t host_hash) const { return host_hash % of == index - 1; }
    // Whether some host could be in both. Not worked out for shards of different N.
    [[nodiscard]] bool overlaps(const Shard& other) const { return of != other.of || index == other.index; }
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
    // Lines of other programs may lack the results of single hosts, and "guard", which then is true. Either
    // way they make no rule.
    bool lacks_keys = false;
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

  private:
    std::int64_t now_;
    FleetLine line_;
};

inline constexpr std::int64_t kClockSlack = 300;    // s
inline constexpr std::size_t kMostLine = 65'536;    // bytes
inline constexpr std::size_t kLeastHostLine = 350;  // bytes: all keys, with empty values

// The line as JSON; text_of() without a line feed.
nlohmann::ordered_json to_json(FleetLine line);
std::string text_of(const FleetLine& line);

}  // namespace wq
