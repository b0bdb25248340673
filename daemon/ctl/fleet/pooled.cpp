// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

// How the evidence of many hosts becomes one
// ==========================================
//
// One host with 3% noise finds a gain of 1% six times in a hundred. A hundred hosts have a hundred times
// the pairs. Each has an e-value for "the candidate costs less": if it does not, the e-value is 1 on average
// at most (evidence/comparison.cpp). Hosts draw their coins independently, so the product of their e-values
// is 1 on average at most too, and the probability that it ever reaches c is at most 1/c. Its logarithm is a
// sum, so any program that can add can pool, in any order and grouping. Pairs, hosts and sums of differences
// add up as well.
//
// Shares. In a product, one host can outweigh all others. If a candidate harms one host, that host's e-value
// of "it costs less" falls without a bound and cancels the evidence of all others. And one host with wrong
// numbers can have an e-value of 10^300. So each host stakes nine tenths of its part, and its gain is capped:
// its share is 0.1 + 0.9 min(E, 1000), for each stake of the e-process by itself. If E is 1 on average, the
// share is at most 1 on average, so it is an e-value too. It is at least 0.1 and at most 900.1.
//
// At any time. min(E, 1000) of a martingale is a supermartingale, and so is a product of independent ones. So
// one may look at the pool each hour and act as soon as there is enough. A watch's alarm begins a host's
// comparison anew at E = 1, which loses evidence of harm and at most a factor of ten against a gain.
//
// Without one host. If the evidence is just enough, one host's share of 900 decides. So a rule is based on
// what remains without the largest share of each stake, and so is the harm that forbids a rule.
//
// Hosts that differ. The product tests "no host gains". A candidate that is a gain on some hosts and harm on
// others lets it grow, but says nothing about the hosts that were not measured, for which a rule is. So if
// the effects of hosts visibly differ (Spread), hosts are counted instead: each has one vote, the sign of its
// sum. If hosts that gain are not more frequent than others, the votes are at worst fair coins, and a bet on
// them with the same stakes is an e-value: its factor is 2 / (1 + exp(-k)) for a vote, and 2 / (1 + exp(k))
// for a vote against. For n hosts it is 2^n at most, so few hosts that differ make no rule. (Simulated,
// docs/fleet.md: without votes every second rule of a fleet whose hosts differ by 0.5% was wrong after a
// week.)
//
// A few hosts that differ can look alike by chance: four hosts whose effects vary four times as much as their
// noise do in 3% of the cases. So a rule may use at most a factor of 8 for each host but one. (Simulated:
// without this limit one in four fleets whose hosts differ by 2% and whose means are all 0 had a rule after
// an hour.)
//
// By host. A rule also needs the results of single hosts, which not every program that adds up sums provides:
// a merged line without them counts in the pool, but no rule is based on it. And since a mean hides that half
// of the hosts lose, hosts with enough evidence of their own are counted, in both directions.

namespace wq {
namespace {

constexpr double kMostEvidence = 1000;
constexpr double kMostForRule = 8;  // factor per host, on average

constexpr std::uint64_t kLeastPairs = 8;
// Differences between hosts below this do not matter. So this is also the least standard deviation that is
// assumed for a host's mean.
constexpr double kLeastDeviation = 1e-3;
// Limit of |mean| of a host. In a sum with the square of a larger one, the digits of other hosts would be
// lost.
constexpr double kMostMean = 10;
constexpr double kNormal80 = 0.8416;              // 80% quantile of the standard normal distribution
constexpr std::uint64_t kLeastToLeaveOneOut = 8;  // hosts

// Cochran's Q: the sum of weight * (mean - overall mean)^2.
double q_of(const Spread& s) {
    return s.weight <= 0 ? 0 : std::max(0.0, s.squares - s.sum * s.sum / s.weight);
}

double q_without(Spread s, const Spread::Host& host) {
    s.weight -= host.weight;
    s.sum -= host.weight * host.mean;
    s.squares -= host.weight * host.mean * host.mean;
    return q_of(s);
}

// The 80% quantile of chi-squared (Wilson and Hilferty, 1931).
double chi_squared_80(double degrees) {
    const double part = 2 / (9 * degrees);
    return degrees * std::pow(1 - part + kNormal80 * std::sqrt(part), 3);
}

PooledSide side_of(const StakeLogs& logs, bool votes) {
    PooledSide out;
    std::ranges::transform(logs, out.sums.begin(), share_of);
    std::ranges::transform(out.sums, out.top.begin(), [](double share) { return std::max(share, 0.0); });
    out.hosts = log_mean(logs) >= std::log(kHostEvidence) ? 1 : 0;
    out.votes = votes ? 1 : 0;
    return out;
}

void add_to(PooledSide& side, const PooledSide& other) {
    for (std::size_t i = 0; i < kStakes.size(); i++) {
        side.sums[i] += other.sums[i];
        side.top[i] = std::max(side.top[i], other.top[i]);
    }
    side.hosts += other.hosts;
    side.votes += other.votes;
}

// ln of the e-value of a bet on VOTES of HOSTS, one of the votes left out.
double log_of_votes(std::uint64_t votes, std::uint64_t hosts) {
    if (votes == 0) return 0;
    StakeLogs logs{};
    for (std::size_t i = 0; i < logs.size(); i++)
        logs[i] = static_cast<double>(votes - 1) * log_factor(kStakes[i]) +
                  static_cast<double>(hosts - votes) * log_factor(-kStakes[i]);
    return log_mean(logs);
}

}  // namespace

Spread Spread::of_host(std::uint64_t pairs, double sum, double squares) {
    if (pairs < kLeastPairs) return {};
    const auto n = static_cast<double>(pairs);
    const double variance = std::max(0.0, squares - sum * sum / n) / (n * (n - 1));
    const Host host{std::clamp(sum / n, -kMostMean, kMostMean),
                    1 / std::max(variance, kLeastDeviation * kLeastDeviation)};
    const double weighted = host.weight * host.mean;
    return {1, host.weight, host.weight * host.weight, weighted, weighted * host.mean, host, host};
}

void Spread::add(const Spread& other) {
    if (other.hosts == 0) return;
    if (hosts == 0 || other.least < least) least = other.least;
    if (hosts == 0 || most < other.most) most = other.most;
    hosts += other.hosts;
    weight += other.weight;
    weight_squares += other.weight_squares;
    sum += other.sum;
    squares += other.squares;
}

double Spread::deviation() const {
    if (hosts < 2) return 0;
    const double scale = weight - weight_squares / weight;
    if (scale <= 0) return 0;
    return std::sqrt(std::max(0.0, (q_of(*this) - static_cast<double>(hosts - 1)) / scale));
}

bool Spread::is_visible() const {
    if (hosts < 3) return false;
    if (hosts < kLeastToLeaveOneOut) return q_of(*this) > chi_squared_80(static_cast<double>(hosts - 1));
    const double q = std::min(q_without(*this, least), q_without(*this, most));
    return q > chi_squared_80(static_cast<double>(hosts - 2));
}

double share_of(double log_e) {
    static const double kMostLogOfHost = std::log(kMostEvidence);
    return std::log(0.1 + 0.9 * std::exp(std::min(log_e, kMostLogOfHost)));
}

Pooled pooled(const HostEvidence& host, double tolerance) {
    const double tolerated = static_cast<double>(host.pairs) * std::log1p(tolerance);
    return {1,
            host.alarms,
            host.pairs,
            side_of(host.better, host.sum < 0),
            side_of(host.worse, host.sum > tolerated),
            host.sum,
            host.squares,
            Spread::of_host(host.pairs, host.sum, host.squares),
            true,
            host.after.pairs > 0 ? 1U : 0U,
            host.after};
}

void Pooled::add(const Pooled& other) {
    hosts += other.hosts;
    alarms += other.alarms;
    pairs += other.pairs;
    add_to(better, other.better);
    add_to(worse, other.worse);
    sum += other.sum;
    squares += other.squares;
    spread.add(other.spread);
    hosts_after += other.hosts_after;
    after.add(other.after);
    if (!by_host || !other.by_host) forget_hosts();
}

void Pooled::forget_hosts() {
    by_host = false;
    better = {better.sums};
    worse = {worse.sums};
    spread = {};
    hosts_after = 0;
}

double PooledSide::log_without_one() const {
    StakeLogs rest = sums;
    for (std::size_t i = 0; i < rest.size(); i++) rest[i] -= top[i];
    return log_mean(rest);
}

double Pooled::log_for_rule(const PooledSide& side) const {
    if (hosts < kLeastHosts || !by_host) return 0;
    const double most = spread.is_visible() ? log_of_votes(side.votes, hosts)
                                            : static_cast<double>(hosts - 1) * std::log(kMostForRule);
    return std::min(side.log_without_one(), most);
}

double Pooled::effect_percent() const {
    return pairs == 0 ? 0 : 100 * std::expm1(sum / static_cast<double>(pairs));
}

std::string e_text(double log) {
    constexpr double kPlainLog = 6.907;  // below e^6.907 = 999.3 the number is printed without an exponent
    if (std::abs(log) <= kPlainLog) return fmt::format("{:.3g}", std::exp(log));
    const double log10 = log / std::numbers::ln10;
    constexpr double kHalfDigit = 0.0021;  // log10(10 / 9.95): 9.95 is written as 10.0
    const double exponent = std::floor(log10 + kHalfDigit);
    return fmt::format("{:.1f}e{:+.0f}", std::pow(10, log10 - exponent), exponent);
}

std::string spread_text(const Pooled& p) {
    if (!p.by_host) return "not known";
    const bool mixed = are_many(p.better.hosts, p.hosts) && are_many(p.worse.hosts, p.hosts);
    return fmt::format("{}{:.2f}%; {} better, {} worse", mixed ? "MIXED: " : "",
                       100 * std::expm1(p.spread.deviation()), fmt::group_digits(p.better.hosts),
                       fmt::group_digits(p.worse.hosts));
}

}  // namespace wq
