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
    EXPECT_EQ(found.by, std::string("ticks"));
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
    EXPECT_EQ(found.work[2].function, "tasklet_work") << "in soft interrupts: the time of the function";
    EXPECT_NEAR(found.work[2].cpu, 0.05, 1e-9);
    EXPECT_THAT(found.work[2].kworkers, IsEmpty());
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
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, std::string("ticks"));
    ASSERT_FALSE(found.work.empty());
    EXPECT_EQ(found.work[0].function, "kcryptd_crypt [dm_crypt]");
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].name, "an unknown workqueue")
        << "of the one that ended";
}

TEST(Diagnosis, HintsAtNoScopeWhereNoneCanHelpAndNamesNoTargetThatAbRefuses) {
    constexpr auto kName = "kcryptd-254:0-1";
    const struct {
        const char* what;
        void (*change)(DiagnoseLook&, DumpedWorkqueue&);
        std::size_t finer;
        const char* target;
    } cases[] = {
        {"as it is", [](auto&, auto&) {}, 1, kName},
        {"ordered", [](auto&, auto& wq) { wq.kind = "ordered"; }, 0, ""},
        {"max_active 1", [](auto&, auto& wq) { wq.max_active = 1; }, 0, ""},
        {"smt", [](auto&, auto& wq) { wq.attrs->effective = Scope::smt; }, 0, kName},
        {"unknown scope", [](auto&, auto& wq) { wq.attrs->effective.reset(); }, 0, kName},
        {"one CPU, one pool", [](auto&, auto& wq) { wq.attrs->cpus = {5}; }, 0, kName},
        {"no dump", [](auto& look, auto&) { look.dump.reset(); }, 0, ""},
        {"two of the name", [](auto& look, auto& wq) { look.dump->workqueues.push_back(wq); }, 0, ""},
    };
    for (const auto& one : cases) {
        auto look = busy_look();
        one.change(look, look.dump->workqueues.at(0));
        const auto found = diagnose(look);
        EXPECT_THAT(named(found, kName).finer, SizeIs(one.finer)) << one.what;
        EXPECT_EQ(named(found, kName).target, one.target) << one.what;
    }
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
    auto& before = look.work->workqueues.at(0).before;
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
    EXPECT_EQ(found.by, std::string("statistics"));
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
    EXPECT_EQ(found.by, std::string("statistics"));
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
    const auto found = diagnose(look);
    EXPECT_EQ(found.by, std::string("names"));
    ASSERT_THAT(found.work, SizeIs(2));
    EXPECT_NEAR(found.work[0].cpu, 0.8, 1e-9);
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].name, "kcryptd-254:0-1");
    EXPECT_EQ(found.workqueues[found.work[0].workqueue].kind, "");
}

TEST(Diagnosis, NamesWorkOnIsolatedCpusThatRanThere) {
    auto look = busy_look();
    look.isolated = {6, 7};
    look.profile->isolated = {{0, "tasklet_work", 3, {}},
                              {20, "vmstat_update", 40, {{true, 6, "", 25}, {false, 0, "bash", 15}}},
                              {99, "gone_fn", 1, {}},
                              {20, "never_ran", 0, {{true, 6, "", 1}}}};
    std::vector<std::string> names;
    for (const auto& one : diagnose(look).isolated) names.push_back(one.workqueue);
    EXPECT_THAT(names, ElementsAre("mm_percpu_wq", "", "an unknown workqueue"));
}

}  // namespace
}  // namespace wq::ctl
