// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include "evidence/e_process.h"
#include "evidence/spread.h"

namespace wq {

// What one host's ledger has of one counter of one comparison.
struct HostEvidence {
    std::uint64_t alarms = 0;  // of the watch: each began the comparison anew
    std::uint64_t pairs = 0;
    StakeLogs better{};  // ln of the e-values of "the candidate costs less", by stake
    StakeLogs worse{};
    double sum = 0;      // of the differences d
    double squares = 0;  // of d * d
    friend bool operator==(const HostEvidence&, const HostEvidence&) = default;
};

// The evidence of many hosts in one. evidence/pooled.cpp explains it. Adding is associative and commutative,
// up to the rounding of doubles; Pooled{} changes nothing.
struct Pooled {
    std::uint64_t hosts = 0;
    std::uint64_t alarms = 0;
    std::uint64_t pairs = 0;
    StakeLogs better{};  // sums of the hosts' shares
    StakeLogs worse{};
    double sum = 0;
    double squares = 0;
    // Whether it is known what single hosts found, which is the rest. If not, the rest is 0: merged lines of
    // other programs may lack it.
    bool by_host = true;
    StakeLogs top_better{};  // the largest share of one host, by stake, at least 0
    StakeLogs top_worse{};
    std::uint64_t hosts_better = 0;  // hosts whose own evidence is enough, see kHostEvidence
    std::uint64_t hosts_worse = 0;
    std::uint64_t hosts_below = 0;  // hosts whose sum is a gain, however small
    std::uint64_t hosts_above = 0;  // hosts whose sum is harm beyond the tolerance
    Spread spread;

    // The sum knows what single hosts found if both do.
    void add(const Pooled& other);
    // What single hosts found is not known.
    void forget_hosts();
    // ln of the pooled e-value, the mean over the stakes.
    [[nodiscard]] double log_better() const { return log_mean(better); }
    [[nodiscard]] double log_worse() const { return log_mean(worse); }
    // The same without the hosts that say it loudest, where these are known. At most log_better() and
    // log_worse(), and at most what remains without any one host.
    [[nodiscard]] double log_better_without_one() const;
    [[nodiscard]] double log_worse_without_one() const;
    // What a rule may rest on: the same, but at most a factor of 8 for each host but one. If hosts visibly
    // differ, at most ln of the e-value for "most hosts are better" (or worse), in which each host but one
    // has a vote. 0 for fewer than kLeastHosts, and where it is not known what single hosts found.
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

// A host's share in the pool, of a stake whose e-value has this logarithm: ln(0.1 + 0.9 min(E, 1000)).
double share_of(double log_e);

// A host counts as better, or worse, where its own e-value reaches this, which chance alone gives to at most
// one in twenty hosts.
inline constexpr double kHostEvidence = 20;
inline constexpr std::uint64_t kLeastHosts = 4;
// And where more of the hosts than this are worse, and more than one of them, no rule is made.
inline constexpr double kMostWorse = 0.05;

}  // namespace wq
