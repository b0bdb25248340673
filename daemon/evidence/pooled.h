// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include "evidence/e_process.h"
#include "evidence/spread.h"

namespace wq {

// The evidence of one host's ledger for one counter of one comparison.
struct HostEvidence {
    std::uint64_t alarms = 0;  // of the watch; each restarted the comparison
    std::uint64_t pairs = 0;
    StakeLogs better{};  // ln of the e-values of "the candidate costs less", by stake
    StakeLogs worse{};
    double sum = 0;      // of the differences d
    double squares = 0;  // of d * d
    friend bool operator==(const HostEvidence&, const HostEvidence&) = default;
};

// The combined evidence of many hosts. evidence/pooled.cpp explains it. Adding is associative and
// commutative, up to the rounding of doubles. Adding Pooled{} changes nothing.
struct Pooled {
    std::uint64_t hosts = 0;
    std::uint64_t alarms = 0;
    std::uint64_t pairs = 0;
    StakeLogs better{};  // sums of the hosts' shares
    StakeLogs worse{};
    double sum = 0;
    double squares = 0;
    // Whether the results of single hosts, which are the members below, are known. If not, these are 0.
    // Merged lines of other programs may lack them.
    bool by_host = true;
    StakeLogs top_better{};  // the largest share of one host, by stake, at least 0
    StakeLogs top_worse{};
    std::uint64_t hosts_better = 0;  // hosts whose own evidence is enough, see kHostEvidence
    std::uint64_t hosts_worse = 0;
    std::uint64_t hosts_below = 0;  // hosts whose sum is a gain, however small
    std::uint64_t hosts_above = 0;  // hosts whose sum is harm beyond the tolerance
    Spread spread;

    // The sum has the results of single hosts if both have them.
    void add(const Pooled& other);
    // Marks the results of single hosts as not known.
    void forget_hosts();
    // ln of the pooled e-value, the mean over the stakes.
    [[nodiscard]] double log_better() const { return log_mean(better); }
    [[nodiscard]] double log_worse() const { return log_mean(worse); }
    // The same without the largest share of each stake, if known. At most log_better() and log_worse(), and
    // at most the value without any single host.
    [[nodiscard]] double log_better_without_one() const;
    [[nodiscard]] double log_worse_without_one() const;
    // What a rule may use: the same, but at most a factor of 8 for each host but one. If hosts visibly
    // differ, at most ln of the e-value for "most hosts are better" (or worse), in which each host but one
    // has a vote. 0 for fewer than kLeastHosts, and if the results of single hosts are not known.
    [[nodiscard]] double log_for_rule_better() const;
    [[nodiscard]] double log_for_rule_worse() const;
    // exp(mean of d) - 1 in percent: above zero is worse. 0 without pairs.
    [[nodiscard]] double effect_percent() const;
    friend bool operator==(const Pooled&, const Pooled&) = default;

  private:
    [[nodiscard]] double log_for_rule(double log, std::uint64_t votes) const;
};

// TOLERANCE of the counter: fraction, 0..1.
Pooled pooled(const HostEvidence& host, double tolerance);

// A host's share in the pool for a stake whose e-value E has this logarithm: ln(0.1 + 0.9 min(E, 1000)).
double share_of(double log_e);

// A host counts as better, or worse, if its own e-value reaches this. By chance alone, at most one host in
// twenty does.
inline constexpr double kHostEvidence = 20;
inline constexpr std::uint64_t kLeastHosts = 4;
// No rule is made if more than one host, and more than this share of the hosts, are worse.
inline constexpr double kMostWorse = 0.05;

}  // namespace wq
