// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "evidence/comparison.h"

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
    friend bool operator==(const HostEvidence&, const HostEvidence&) = default;
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

}  // namespace wq
