// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/pooled.h"

#include <algorithm>
#include <cmath>

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
// comparison anew at E = 1. This loses evidence of harm, and at most a factor of ten of evidence against a
// gain. A change without effect has an alarm once in 20,000 pairs.
//
// Without one host. Even with a cap, one host can decide: if the evidence is just enough, its share of 900
// decides. So a rule is based on what remains without the largest share of each stake. Then it would also be
// made without any single host, and one host alone makes no rule. The same applies to the evidence of harm
// that forbids a rule.
//
// Hosts that differ. The product tests "no host gains". If the candidate is a gain on some hosts and harm on
// others, this is false and the product grows. But this says nothing about hosts that were not measured, and
// a rule is for these. So if the effects of hosts visibly differ (evidence/spread.h), hosts are counted
// instead: each has one vote, the sign of its sum. If hosts that gain are not more frequent than others, the
// votes are at worst fair coins, and a bet on them with the same stakes is an e-value: its factor is 2 / (1 +
// exp(-k)) for a vote, and 2 / (1 + exp(k)) for a vote against. Its largest value for n hosts is 2^n, so few
// hosts that differ make no rule. With fewer than four hosts it is not visible whether they differ.
// (Simulated, docs/fleet.md: without votes, every second rule of a fleet whose hosts differ by 0.5% was wrong
// after a week.)
//
// A few hosts that differ can look alike by chance: four hosts whose effects vary four times as much as their
// noise do in 3% of the cases. So a rule may use at most a factor of 8 for each host but one: 512 with four
// hosts. This passes if many rules pass, or if there are few questions. (Simulated: without this limit, one
// in four fleets whose hosts differ by 2% and whose means are all 0 had a rule after an hour.)
//
// By host. A rule also needs the results of single hosts (the largest shares, the votes, how hosts differ,
// and how many are worse). Not every program that adds up sums provides them. A merged line without them
// counts in the pool, but no rule is based on a sum with such a line.
//
// Better and worse hosts. A mean hides that half of the hosts gain and half of them lose. So hosts with
// enough evidence of their own are counted, in both directions.

namespace wq {
namespace {

constexpr double kMostEvidence = 1000;
constexpr double kMostForRule = 8;  // factor per host, on average

StakeLogs shares_of(const StakeLogs& logs) {
    StakeLogs out{};
    std::ranges::transform(logs, out.begin(), share_of);
    return out;
}

StakeLogs without(StakeLogs sums, const StakeLogs& top) {
    for (std::size_t i = 0; i < sums.size(); i++) sums[i] -= top[i];
    return sums;
}

void add_to(StakeLogs& sums, const StakeLogs& more) {
    for (std::size_t i = 0; i < sums.size(); i++) sums[i] += more[i];
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

void raise_to(StakeLogs& top, const StakeLogs& other) {
    for (std::size_t i = 0; i < top.size(); i++) top[i] = std::max(top[i], other[i]);
}

}  // namespace

double share_of(double log_e) {
    static const double kMostLog = std::log(kMostEvidence);
    return std::log(0.1 + 0.9 * std::exp(std::min(log_e, kMostLog)));
}

Pooled pooled(const HostEvidence& host, double tolerance) {
    static const double kEnough = std::log(kHostEvidence);
    Pooled out;
    out.hosts = 1;
    out.alarms = host.alarms;
    out.pairs = host.pairs;
    out.better = shares_of(host.better);
    out.worse = shares_of(host.worse);
    raise_to(out.top_better, out.better);
    raise_to(out.top_worse, out.worse);
    out.hosts_better = log_mean(host.better) >= kEnough ? 1 : 0;
    out.hosts_worse = log_mean(host.worse) >= kEnough ? 1 : 0;
    out.hosts_below = host.sum < 0 ? 1 : 0;
    out.hosts_above = host.sum > static_cast<double>(host.pairs) * std::log1p(tolerance) ? 1 : 0;
    out.sum = host.sum;
    out.squares = host.squares;
    out.spread = Spread::of_host(host.pairs, host.sum, host.squares);
    return out;
}

void Pooled::add(const Pooled& other) {
    hosts += other.hosts;
    alarms += other.alarms;
    pairs += other.pairs;
    add_to(better, other.better);
    add_to(worse, other.worse);
    sum += other.sum;
    squares += other.squares;
    if (!by_host || !other.by_host) return forget_hosts();
    raise_to(top_better, other.top_better);
    raise_to(top_worse, other.top_worse);
    hosts_better += other.hosts_better;
    hosts_worse += other.hosts_worse;
    hosts_below += other.hosts_below;
    hosts_above += other.hosts_above;
    spread.add(other.spread);
}

void Pooled::forget_hosts() {
    by_host = false;
    top_better = top_worse = {};
    hosts_better = hosts_worse = hosts_below = hosts_above = 0;
    spread = {};
}

double Pooled::log_better_without_one() const {
    return log_mean(without(better, top_better));
}

double Pooled::log_worse_without_one() const {
    return log_mean(without(worse, top_worse));
}

// LOG (of all hosts but one), limited to what a rule may use.
double Pooled::log_for_rule(double log, std::uint64_t votes) const {
    if (hosts < kLeastHosts || !by_host) return 0;
    const double most = spread.is_visible() ? log_of_votes(votes, hosts)
                                            : static_cast<double>(hosts - 1) * std::log(kMostForRule);
    return std::min(log, most);
}

double Pooled::log_for_rule_better() const {
    return log_for_rule(log_better_without_one(), hosts_below);
}

double Pooled::log_for_rule_worse() const {
    return log_for_rule(log_worse_without_one(), hosts_above);
}

double Pooled::effect_percent() const {
    return pairs == 0 ? 0 : 100 * std::expm1(sum / static_cast<double>(pairs));
}

}  // namespace wq
