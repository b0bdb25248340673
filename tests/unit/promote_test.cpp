// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <cmath>

#include "ctl/fleet/fleet.h"
#include "fleet_lines.h"

namespace wq {
namespace {

using test::fleet_key;
using test::measured;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kRate = 0.05;

std::vector<double> logs_of(const std::vector<double>& values) {
    std::vector<double> out;
    for (const double value : values) out.push_back(std::log(value));
    return out;
}

TEST(EBh, AsksLessOfEachTheMoreThereAre) {
    EXPECT_THAT(e_bh({}, kRate), IsEmpty());
    EXPECT_THAT(e_bh(logs_of({19.9}), kRate), ElementsAre(false));
    EXPECT_THAT(e_bh(logs_of({20}), kRate), ElementsAre(true));
    // With four hypotheses, e-BH needs e-values of 80 for one, 40 for two, 26.7 for three, 20 for all.
    EXPECT_THAT(e_bh(logs_of({79, 1, 39, 1}), kRate), ElementsAre(false, false, false, false));
    EXPECT_THAT(e_bh(logs_of({81, 1, 39, 1}), kRate), ElementsAre(true, false, false, false));
    EXPECT_THAT(e_bh(logs_of({41, 1, 1e300, 1}), kRate), ElementsAre(true, false, true, false));
    EXPECT_THAT(e_bh(logs_of({27, 27, 27, 0}), kRate), ElementsAre(true, true, true, false));
    EXPECT_THAT(e_bh(logs_of({20, 20, 20, 20}), kRate), ElementsAre(true, true, true, true));
}

// A fleet whose hosts measured one comparison, or several.
class Fleet {
  public:
    explicit Fleet(std::uint64_t seed) : random_(seed) {}
    Fleet& hosts(unsigned count, double effect, const FleetKey& key = fleet_key(), unsigned pairs = 64) {
        for (unsigned i = 0; i < count; i++) add(key, measured(pairs, effect, random_));
        return *this;
    }
    Fleet& add(const FleetKey& key, const HostEvidence& own) {
        for (FleetEntry& entry : entries_)
            if (entry.key == key) {
                entry.pooled.add(pooled(own, key.tolerance));
                return *this;
            }
        entries_.push_back({key, pooled(own, key.tolerance), 1, {}});
        return *this;
    }
    // "class: use smt", "class: leave"
    [[nodiscard]] std::vector<std::string> rules() const {
        std::vector<std::string> out;
        for (const FleetRule& rule : promoted(entries_, kRate).rules)
            out.push_back(rule.key().kind + (rule.leave ? ": leave" : ": use " + rule.key().candidate));
        return out;
    }
    [[nodiscard]] const std::vector<FleetEntry>& entries() const { return entries_; }
    // Like an entry from a merged line of another program: without evidence per host.
    Fleet& forget_hosts(const FleetKey& key) {
        for (FleetEntry& entry : entries_)
            if (entry.key == key) entry.pooled.forget_hosts();
        return *this;
    }

  private:
    Random random_;
    std::vector<FleetEntry> entries_;
};

double for_rule(const Pooled& pooled) {
    return pooled.log_for_rule(pooled.better);
}

FleetKey arms(const std::string& reference, const std::string& candidate,
              const std::string& origin = "kernel") {
    FleetKey key = fleet_key("a");
    key.reference = reference;
    key.candidate = candidate;
    key.reference_origin = origin;
    return key;
}

TEST(Promote, WhatManyHostsFindTogetherIsARule) {
    EXPECT_THAT(Fleet(1).hosts(40, -0.01, fleet_key("a")).rules(), ElementsAre("a: use smt"));
    EXPECT_THAT(Fleet(2).hosts(40, 0.01, fleet_key("a")).rules(), ElementsAre("a: leave"));
    EXPECT_THAT(Fleet(3).hosts(40, 0, fleet_key("a")).rules(), IsEmpty());
    EXPECT_THAT(promoted({}, kRate).rules, IsEmpty());
    // Two hosts are not enough, four are. Three are not enough, however strong their evidence is.
    EXPECT_THAT(Fleet(4).hosts(2, -0.012).rules(), IsEmpty());
    EXPECT_THAT(Fleet(4).hosts(4, -0.012).rules(), SizeIs(1));
    EXPECT_THAT(Fleet(5).hosts(3, -0.2, fleet_key(), 1000).rules(), IsEmpty());
}

// Evidence of one host that no real ledger can have.
HostEvidence absurd(double better, double worse) {
    HostEvidence out;
    out.pairs = 1'000'000;
    out.better.fill(better);
    out.worse.fill(worse);
    out.sum = better > 0 ? -1e6 : 1e6;
    out.squares = 1e7;
    return out;
}

TEST(Promote, OneHostNeitherMakesNorKillsARule) {
    const FleetKey key = fleet_key("a");
    for (unsigned hosts = 0; hosts <= 30; hosts += 5) {
        EXPECT_THAT(Fleet(6).hosts(hosts, 0, key).add(key, absurd(1e6, -1e6)).rules(), IsEmpty()) << hosts;
        EXPECT_THAT(Fleet(6).hosts(hosts, 0, key).add(key, absurd(-1e6, 1e6)).rules(), IsEmpty()) << hosts;
    }
    for (const unsigned hosts : {15U, 25U, 50U, 100U}) {
        EXPECT_THAT(Fleet(7).hosts(hosts, -0.015, key).add(key, absurd(-1e6, 1e6)).rules(),
                    ElementsAre("a: use smt"))
            << hosts;
        EXPECT_THAT(Fleet(7).hosts(hosts, 0.015, key).add(key, absurd(1e6, -1e6)).rules(),
                    ElementsAre("a: leave"))
            << hosts;
    }
}

// The same for the pool: evidence for a rule is at most the evidence that is left without any one host.
TEST(Promote, EvidenceForARuleIsAtMostWhatIsLeftWithoutAnyOneHost) {
    Random random(8);
    for (int round = 0; round < 50; round++) {
        std::vector<Pooled> hosts;
        for (int i = 0; i < 6; i++) hosts.push_back(pooled(measured(16, 0.05 * random.normal(), random), 0));
        Pooled all;
        for (const Pooled& host : hosts) all.add(host);
        for (std::size_t left_out = 0; left_out < hosts.size(); left_out++) {
            Pooled rest;
            for (std::size_t i = 0; i < hosts.size(); i++)
                if (i != left_out) rest.add(hosts[i]);
            EXPECT_LE(all.better.log_without_one(), rest.better.log() + 1e-12);
            EXPECT_LE(all.worse.log_without_one(), rest.worse.log() + 1e-12);
        }
        EXPECT_LE(all.better.log_without_one(), all.better.log() + 1e-12);
    }
}

TEST(Promote, AGainOnHalfOfTheHostsAndALossOnTheOtherHalfIsNoRule) {
    const FleetKey key = fleet_key("a");
    const Fleet fleet = Fleet(9).hosts(20, -0.04, key).hosts(20, 0.03, key);
    EXPECT_THAT(fleet.rules(), IsEmpty());
    const Pooled& p = fleet.entries()[0].pooled;
    EXPECT_EQ(p.better.hosts, 20U);
    EXPECT_GE(p.worse.hosts, 18U);
    EXPECT_TRUE(p.spread.is_visible());
    EXPECT_NEAR(p.spread.deviation(), 0.035, 0.01);
    EXPECT_GT(p.better.log(), 20) << "though the product has all the evidence";
}

TEST(Promote, AFewHostsThatLoseForbidARule) {
    const FleetKey key = fleet_key("a");
    EXPECT_THAT(Fleet(10).hosts(60, -0.02, key).hosts(1, 0.1, key).rules(), SizeIs(1));
    EXPECT_THAT(Fleet(10).hosts(60, -0.02, key).hosts(3, 0.1, key).rules(), SizeIs(1)) << "under 5%";
    const Fleet many = Fleet(10).hosts(60, -0.02, key).hosts(6, 0.1, key);
    EXPECT_THAT(many.rules(), IsEmpty());
}

// Evidence of hosts that guard by a counter is not added to that of hosts that judge by it.
TEST(Promote, AGuardForbidsARuleAndSpeaksForNothing) {
    const FleetKey key = fleet_key("a");
    FleetKey guard = key;
    guard.counter = "throughput";
    guard.guard = true;
    guard.tolerance = 0.01;
    FleetKey of_other_arms = guard;
    of_other_arms.candidate = "cpu";
    FleetKey of_latency = key;
    of_latency.guard = true;
    const auto gain = [&] { return Fleet(11).hosts(30, -0.02, key); };
    EXPECT_THAT(gain().hosts(30, 0, guard).rules(), ElementsAre("a: use smt"));
    EXPECT_THAT(gain().hosts(30, 0.03, guard).rules(), ElementsAre("a: leave"));
    EXPECT_THAT(gain().hosts(30, 0.03, of_other_arms).rules(), ElementsAre("a: use smt"));
    EXPECT_THAT(Fleet(11).hosts(30, -0.02, guard).rules(), IsEmpty());
    EXPECT_THAT(Fleet(18).hosts(30, -0.02, of_latency).hosts(1, -0.02, key).rules(), IsEmpty());
    EXPECT_THAT(Fleet(18).hosts(30, -0.02, of_latency).hosts(30, -0.02, key).rules(),
                ElementsAre("a: use smt"));
    EXPECT_THAT(Fleet(18).hosts(1, 0.1, of_latency).hosts(20, -0.02, key).hosts(1, 0.1, key).rules(),
                IsEmpty())
        << "2 of 22 are worse";
}

TEST(Promote, WithoutWhatSingleHostsFoundThereIsNoRule) {
    const FleetKey key = fleet_key("a");
    for (const double effect : {-0.02, 0.02}) {
        const Fleet fleet = Fleet(19).hosts(40, effect, key).forget_hosts(key);
        EXPECT_EQ(for_rule(fleet.entries()[0].pooled), 0);
        const FleetRules found = promoted(fleet.entries(), kRate);
        EXPECT_THAT(found.rules, IsEmpty());
        EXPECT_EQ(found.hypotheses, 0U);
    }
    // The same if it is missing for some of the hosts, or for a guard that could forbid the rule.
    FleetKey other = key;
    other.scheduler = "scx_lavd";
    EXPECT_THAT(Fleet(19).hosts(40, -0.02, key).hosts(4, -0.02, other).rules(), ElementsAre("a: use smt"));
    EXPECT_THAT(Fleet(19).hosts(40, -0.02, key).hosts(4, -0.02, other).forget_hosts(other).rules(),
                IsEmpty());
    FleetKey guard = key;
    guard.counter = "throughput";
    guard.guard = true;
    EXPECT_THAT(Fleet(19).hosts(40, -0.02, key).hosts(30, 0, guard).forget_hosts(guard).rules(), IsEmpty());
    // A guard of one host cannot forbid a rule.
    EXPECT_THAT(Fleet(19).hosts(40, -0.02, key).hosts(1, 0.2, guard).forget_hosts(guard).rules(),
                ElementsAre("a: use smt"));
}

TEST(Promote, AKindThatLosesForbidsTheRuleOfItsConditions) {
    FleetKey one = fleet_key("a");
    FleetKey two = fleet_key("a");
    one.machine.packages = 1;  // no condition can tell `one` from `two`
    EXPECT_THAT(Fleet(12).hosts(60, -0.02, one).hosts(6, -0.02, two).rules(), SizeIs(1));
    EXPECT_THAT(Fleet(12).hosts(200, -0.02, one).hosts(6, 0.02, two).rules(), IsEmpty());
    two.machine.cores = 64;  // a condition on the cores can
    EXPECT_THAT(Fleet(12).hosts(60, -0.02, one).hosts(20, 0.02, two).rules(),
                ElementsAre("a: leave", "a: use smt"));
}

TEST(Promote, FollowsWhatImprovedFromArmToArm) {
    const struct {
        std::vector<std::pair<FleetKey, double>> measured;
        std::vector<std::string> rules;
    } rows[] = {
        {{{arms("cache", "smt"), -0.02}, {arms("smt", "cpu", "policy"), -0.02}}, {"a: use cpu"}},
        {{{arms("cache", "smt"), -0.02}, {arms("smt", "cpu", "policy"), 0.02}}, {"a: use smt"}},
        {{{arms("cache", "smt"), -0.01}, {arms("cache", "cpu"), -0.04}}, {"a: use cpu"}},
        // Only compared against an arm of a policy: its rule moves to the better arm, or stays.
        {{{arms("smt", "cpu", "policy"), -0.02}}, {"a: use cpu"}},
        {{{arms("smt", "cpu", "policy"), 0.02}}, {}},
        // Improvements in a circle: the search stops.
        {{{arms("cache", "smt"), -0.02}, {arms("smt", "cache", "policy"), -0.02}}, {"a: use smt"}},
        // An arm that is worse than the kernel's setting is not used, even if it is better than another arm.
        {{{arms("cache", "cpu"), 0.02}, {arms("smt", "cpu", "policy"), -0.02}}, {"a: leave"}},
    };
    for (const auto& [measured, rules] : rows) {
        Fleet fleet(13);
        for (const auto& [key, effect] : measured) fleet.hosts(60, effect, key);
        EXPECT_EQ(fleet.rules(), rules);
    }
}

TEST(Promote, WhatIsVetoedAgainstTheKernelIsNotReachedThroughAPolicy) {
    const auto fleet = [] {
        return Fleet(15)
            .hosts(32, -0.03, arms("cache", "smt"))
            .hosts(8, 0.05, arms("cache", "smt"))
            .hosts(40, -0.03, arms("cpu", "smt", "policy"));
    };
    EXPECT_THAT(fleet().rules(), IsEmpty());
    EXPECT_THAT(fleet().hosts(40, -0.02, arms("cache", "cpu")).rules(), ElementsAre("a: use cpu"));
    // An arm that is worse than a policy's arm may still be better than the kernel's setting.
    EXPECT_THAT(Fleet(15)
                    .hosts(40, -0.03, arms("cache", "smt"))
                    .hosts(40, 0.03, arms("cpu", "smt", "policy"))
                    .rules(),
                ElementsAre("a: use smt"));
}

TEST(Promote, ClassesThatOneHostInventsAskNothing) {
    Fleet fleet = Fleet(16).hosts(12, -0.005, fleet_key("a"));
    const double log = for_rule(fleet.entries()[0].pooled);
    EXPECT_GT(log, std::log(2 / kRate)) << "enough for two questions";
    EXPECT_LT(log, std::log(600 / kRate)) << "but not for 600";
    for (unsigned i = 0; i < 300; i++)
        fleet.hosts(i % 3 + 1, -0.1, fleet_key("invented" + std::to_string(i)));
    EXPECT_EQ(promoted(fleet.entries(), kRate).hypotheses, 2U);
    EXPECT_THAT(fleet.rules(), ElementsAre("a: use smt"));
}

TEST(Spread, OneHostDoesNotHideThatTheOthersDiffer) {
    Random random(17);
    Spread fleet;
    for (int i = 0; i < 20; i++) {
        const HostEvidence own = measured(16, i % 2 == 0 ? -0.03 : 0.02, random);
        fleet.add(Spread::of_host(own.pairs, own.sum, own.squares));
    }
    ASSERT_TRUE(fleet.is_visible());
    for (const double mean : {1.0, 20.0, 1e8, -1e8}) {
        Spread with = fleet;
        with.add(Spread::of_host(16, 16 * mean, 16 * mean * mean));
        EXPECT_TRUE(with.is_visible()) << mean;
    }
}

TEST(Spread, AddsUpInAnyOrderAndSeesWhatNoiseDoesNotExplain) {
    Random random(14);
    const auto hosts = [&](unsigned count, double between) {
        std::vector<Spread> out;
        for (unsigned i = 0; i < count; i++) {
            const HostEvidence own = measured(64, between * random.normal(), random);
            out.push_back(Spread::of_host(own.pairs, own.sum, own.squares));
        }
        return out;
    };
    unsigned visible = 0;
    for (int round = 0; round < 200; round++) {
        Spread alike;
        for (const Spread& host : hosts(20, 0)) alike.add(host);
        visible += alike.is_visible() ? 1 : 0;
    }
    EXPECT_LE(visible, 45U) << "of 200: chance alone";
    const auto different = hosts(20, 0.02);
    Spread forward;
    Spread backward;
    for (const Spread& host : different) forward.add(host);
    for (auto host = different.rbegin(); host != different.rend(); ++host) backward.add(*host);
    EXPECT_TRUE(forward.is_visible());
    EXPECT_NEAR(forward.deviation(), 0.02, 0.007);
    EXPECT_NEAR(forward.deviation(), backward.deviation(), 1e-12);
    EXPECT_EQ(forward.least, backward.least);
    EXPECT_EQ(Spread::of_host(7, 1, 1), Spread()) << "too few pairs";
    EXPECT_FALSE(Spread().is_visible());
    EXPECT_EQ(Spread().deviation(), 0);
}

}  // namespace
}  // namespace wq
