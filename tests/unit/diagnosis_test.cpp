// SPDX-License-Identifier: LGPL-2.1-or-later
// diagnose(): from the samples of a look to findings.
#include "ctl/observe/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_look.h"

namespace wq::ctl {
namespace {

using test::busy_look;
using test::dump_of_two_caches;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const DiagnosedWorkqueue& named(const Diagnosis& found, const std::string& name) {
    for (const auto& one : found.workqueues)
        if (one.name == name) return one;
    throw std::runtime_error("no workqueue " + name);
}

TEST(Diagnosis, SortsFunctionsByWhatTheyCost) {
    const auto found = diagnose(busy_look());
    EXPECT_EQ(found.by, Attribution::ticks);
    ASSERT_THAT(found.work, SizeIs(3));
    EXPECT_EQ(found.work[0].function, "kcryptd_crypt [dm_crypt]");
    EXPECT_NEAR(found.work[0].cpu, 1.2, 1e-9);
    ASSERT_THAT(found.work[0].kworkers, SizeIs(2));
    EXPECT_EQ(found.work[0].kworkers[0].name, "kworker/u9:3");
    EXPECT_NEAR(found.work[0].kworkers[0].cpu, 0.8, 1e-9);
    EXPECT_EQ(found.work[0].kworkers[0].cpus.list(), "0-7");
    EXPECT_EQ(found.work[0].kworkers[1].name, "kworker/u9:4") << "it ended: the name is the sampler's";
    EXPECT_TRUE(found.work[0].kworkers[1].cpus.empty());
    EXPECT_EQ(found.work[0].per_second, 1000);
    EXPECT_EQ(found.work[0].mean_ns, 1.5e6);
    EXPECT_EQ(found.work[0].longest_ns, 34e6);
    EXPECT_EQ(found.work[1].function, "vmstat_update");
    EXPECT_EQ(found.work[2].function, "tasklet_work");
    EXPECT_NEAR(found.cpu, 1.05, 1e-9);
    EXPECT_EQ(found.unsampled, 0);
}

TEST(Diagnosis, SharesOutTheExactTimeOfATaskByItsSamples) {
    auto look = busy_look();
    auto& ran = look.profile->ran;
    ran[0].cpu_ns = 30'000'000;  // most ticks were lost
    ran.push_back({20, "other", 103, "kworker/u9:3", 10'000'000, 0});
    ran.erase(ran.begin() + 1);
    const auto found = diagnose(look);
    ASSERT_THAT(found.work, SizeIs(3));
    EXPECT_NEAR(found.work[0].cpu, 0.6 + 0.4, 1e-9);
    EXPECT_EQ(found.work[1].function, "other");
    EXPECT_NEAR(found.work[1].cpu, 0.2, 1e-9);
    EXPECT_NEAR(found.unsampled, 0.25, 1e-9) << "no tick found kworker/0:1";
}

TEST(Diagnosis, CallsAWorkqueueAsItsKworkerDoesWhereTheKernelDoesNotListThem) {
    auto look = busy_look();
    look.work.reset();
    look.before.clear();
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, Attribution::ticks);
    ASSERT_FALSE(found.work.empty());
    EXPECT_EQ(found.work[0].function, "kcryptd_crypt [dm_crypt]");
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].name, "an unknown workqueue")
        << "of the one that ended";
}

TEST(Diagnosis, TakesTheTimeOfSoftInterruptsFromTheirFunctions) {
    const auto found = diagnose(busy_look());
    EXPECT_EQ(named(found, "bh_wq").kind, "bh");
    EXPECT_NEAR(found.work[2].cpu, 0.05, 1e-9);
    EXPECT_THAT(found.work[2].kworkers, IsEmpty());
}

TEST(Diagnosis, KnowsTheLockAndWhoSharesThePool) {
    const auto found = diagnose(busy_look());
    const auto& crypt = named(found, "kcryptd-254:0-1");
    EXPECT_EQ(crypt.kind, "unbound");
    EXPECT_NEAR(*crypt.lock_share, 0.5, 1e-9);
    EXPECT_NEAR(*crypt.lock_cpu, 0.02, 1e-9);
    EXPECT_EQ(crypt.pool_cpus, 4U) << "CPU 3 is offline, its pool has five";
    EXPECT_EQ(crypt.pool_shared, 1U);
    EXPECT_EQ(crypt.max_active, 64);
    EXPECT_EQ(crypt.target, "kcryptd-254:0-1");
    EXPECT_EQ(crypt.scope, Scope::cache);
    EXPECT_THAT(crypt.finer, ElementsAre(Scope::smt)) << "cpu makes the same pools";
    EXPECT_THAT(crypt.coarser, IsEmpty());
    const auto& events = named(found, "mm_percpu_wq");
    EXPECT_EQ(events.kind, "per-cpu");
    EXPECT_FALSE(events.scope);
    EXPECT_THAT(events.finer, IsEmpty());
    EXPECT_EQ(events.target, "");
    EXPECT_EQ(events.pool_cpus, 0U);
}

TEST(Diagnosis, HintsAtNoScopeWhereNoneCanHelp) {
    const auto finer = [](auto change) {
        auto look = busy_look();
        change(look, look.dump->workqueues.at(0));
        return named(diagnose(look), "kcryptd-254:0-1").finer;
    };
    EXPECT_THAT(finer([](auto&, auto&) {}), SizeIs(1));
    EXPECT_THAT(finer([](auto&, auto& wq) { wq.kind = "ordered"; }), IsEmpty());
    EXPECT_THAT(finer([](auto&, auto& wq) { wq.max_active = 1; }), IsEmpty());
    EXPECT_THAT(finer([](auto&, auto& wq) { wq.attrs->effective = Scope::smt; }), IsEmpty());
    EXPECT_THAT(finer([](auto&, auto& wq) { wq.attrs->effective.reset(); }), IsEmpty());
    EXPECT_THAT(finer([](auto&, auto& wq) { wq.attrs->cpus = {5}; }), IsEmpty()) << "one CPU, one pool";
    EXPECT_THAT(finer([](auto& look, auto&) { look.dump.reset(); }), IsEmpty());
    EXPECT_THAT(finer([](auto& look, auto& wq) { look.dump->workqueues.push_back(wq); }), IsEmpty())
        << "which of the two is not known";
}

TEST(Diagnosis, NamesNoTargetThatAbRefuses) {
    const auto target = [](auto change) {
        auto look = busy_look();
        change(look, look.dump->workqueues.at(0));
        return named(diagnose(look), "kcryptd-254:0-1").target;
    };
    EXPECT_EQ(target([](auto&, auto&) {}), "kcryptd-254:0-1");
    EXPECT_EQ(target([](auto&, auto& wq) { wq.kind = "ordered"; }), "");
    EXPECT_EQ(target([](auto&, auto& wq) { wq.max_active = 1; }), "");
    EXPECT_EQ(target([](auto& look, auto&) { look.dump.reset(); }), "") << "it is not known";
}

TEST(Diagnosis, ReachesByTheDefaultWhatIsNotInSysfs) {
    auto look = busy_look();
    auto& row = look.work->workqueues.at(0).now;
    row.in_sysfs = false;
    EXPECT_EQ(named(diagnose(look), row.name).target, "");
    row.follows_default = true;
    EXPECT_EQ(named(diagnose(look), row.name).target, "@default");
}

TEST(Diagnosis, NamesCoarserScopesWhereEachCoreIsACacheOfItsOwn) {
    auto look = busy_look();
    look.dump->scopes[Scope::cache] = look.dump->scopes[Scope::smt];
    const auto found = diagnose(look);
    EXPECT_THAT(named(found, "kcryptd-254:0-1").finer, IsEmpty());
    EXPECT_THAT(named(found, "kcryptd-254:0-1").coarser, ElementsAre(Scope::numa)) << "system is the same";
    look.dump->workqueues.at(0).attrs->effective = Scope::smt;
    EXPECT_THAT(named(diagnose(look), "kcryptd-254:0-1").coarser, IsEmpty()) << "somebody chose smt";
}

TEST(Diagnosis, CountsWhatHappenedMeanwhileOnly) {
    auto look = busy_look();
    auto& before = look.before.at(0);
    auto& now = look.work->workqueues.at(0).now;
    before.mem_reclaim = now.mem_reclaim = true;
    before.mayday = 5, now.mayday = 8;
    before.rescued = 10, now.rescued = 10;
    before.repatriated = 1, now.repatriated = 3;
    auto found = diagnose(look);
    EXPECT_EQ(named(found, now.name).mayday, 3U);
    EXPECT_EQ(named(found, now.name).rescued, 0U);
    EXPECT_EQ(named(found, now.name).repatriated, 2U);
    EXPECT_FALSE(named(found, now.name).cpu_hogs) << "the kernel counts none of an unbound workqueue";
    look.work->workqueues.at(0).reset = true;
    found = diagnose(look);
    EXPECT_FALSE(named(found, now.name).mayday);
}

TEST(Diagnosis, HasWorkqueuesWithEventsThoughTheyCostNothing) {
    auto look = busy_look();
    WorkqueueRow quiet;
    quiet.id = 9;
    quiet.now = workqueue(90, "quiet");
    look.work->workqueues.push_back(quiet);
    EXPECT_THAT(diagnose(look).workqueues, SizeIs(3));
    look.work->workqueues.back().now.cpu_intensive = 2;  // new workqueue: all of its events are of this look
    const auto found = diagnose(look);
    EXPECT_THAT(found.workqueues, SizeIs(4));
    EXPECT_EQ(named(found, "quiet").cpu_hogs, 2U);
}

TEST(Diagnosis, DividesTheKernelsStatisticsWithoutSamples) {
    auto look = busy_look();
    look.sampled = false;
    look.profile.reset();
    FunctionRow other = look.work->functions.at(0);
    other.function = "kcryptd_io_read_work [dm_crypt]";
    other.busy = 0.5;
    look.work->functions.push_back(other);  // in addition to 1.5 busy workers of the first
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, Attribution::statistics);
    ASSERT_GE(found.work.size(), 2U);
    EXPECT_EQ(found.work[0].function, "kcryptd_crypt [dm_crypt]");
    EXPECT_NEAR(found.work[0].cpu, 0.9, 1e-9);
    EXPECT_NEAR(found.work[1].cpu, 0.3, 1e-9);
    ASSERT_THAT(found.work[0].kworkers, SizeIs(1))
        << "kworkers are matched by the workqueue name that the kernel reported";
    EXPECT_EQ(found.work[0].kworkers[0].name, "kworker/u9:3");
}

TEST(Diagnosis, BlamesNoFunctionForMoreThanTheTimeThatItTook) {
    auto look = busy_look();
    look.sampled = false;
    look.profile.reset();
    look.work->functions.at(0).busy = 0.2;  // kcryptd used 1.2 CPUs: another item still runs
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, Attribution::statistics);
    ASSERT_THAT(found.work, SizeIs(4));
    EXPECT_EQ(found.work[0].function, "");
    EXPECT_NEAR(found.work[0].cpu, 1.0, 1e-9);
    EXPECT_FALSE(found.work[0].mean_ns);
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].name, "kcryptd-254:0-1");
    EXPECT_THAT(found.work[0].kworkers, SizeIs(1)) << "they go with the most costly";
    EXPECT_EQ(found.work[1].function, "vmstat_update");
    EXPECT_NEAR(found.work[1].cpu, 0.25, 1e-9);
    EXPECT_EQ(found.work[2].function, "kcryptd_crypt [dm_crypt]");
    EXPECT_NEAR(found.work[2].cpu, 0.2, 1e-9);
    EXPECT_NEAR(named(found, "kcryptd-254:0-1").cpu, 1.2, 1e-9);
}

TEST(Diagnosis, KnowsWorkqueuesWithoutAnyProbe) {
    auto look = busy_look();
    look.sampled = false;
    look.profile.reset();
    look.work->functions.clear();
    const auto found = diagnose(look);
    ASSERT_FALSE(found.work.empty());
    EXPECT_EQ(found.work[0].function, "");
    EXPECT_NEAR(found.work[0].cpu, 1.2, 1e-9);
}

TEST(Diagnosis, GoesByNamesWhereNothingElseIsLeft) {
    auto look = busy_look();
    look.sampled = false;
    look.profile.reset();
    look.work.reset();
    look.dump.reset();
    look.before.clear();
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, Attribution::names);
    ASSERT_THAT(found.work, SizeIs(2));
    EXPECT_NEAR(found.work[0].cpu, 0.8, 1e-9);
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].name, "kcryptd-254:0-1");
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].kind, "");
}

TEST(Diagnosis, NamesWorkOnIsolatedCpusWithItsOrigin) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{0, "tasklet_work", 3, {}},
                              {20, "vmstat_update", 40, {{true, 6, "", 25}, {false, 0, "bash", 15}}},
                              {99, "gone_fn", 1, {}},
                              {20, "never_ran", 0, {{true, 6, "", 1}}}};
    const auto found = diagnose(look);
    ASSERT_THAT(found.isolated, SizeIs(3));
    EXPECT_EQ(found.isolated[0].workqueue, "mm_percpu_wq");
    EXPECT_EQ(found.isolated[0].kind, "per-cpu");
    EXPECT_EQ(found.isolated[0].items, 40U);
    EXPECT_THAT(found.isolated[0].origins, SizeIs(2));
    EXPECT_EQ(found.isolated[1].workqueue, "");
    EXPECT_EQ(found.isolated[2].workqueue, "an unknown workqueue");
}

TEST(Diagnosis, NamesThoseThatAreStuck) {
    auto look = busy_look();
    KworkerUse stuck;
    stuck.name = "kworker/3:1";
    stuck.work = "md_misc";
    stuck.stuck = true;
    stuck.sleeps_in = "blk_mq_freeze_queue_wait";
    look.kworkers.push_back(stuck);
    const auto found = diagnose(look);
    ASSERT_THAT(found.stuck, SizeIs(1));
    EXPECT_EQ(found.stuck[0].name, "kworker/3:1");
}

}  // namespace
}  // namespace wq::ctl
