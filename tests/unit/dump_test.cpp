// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ctl/options.h"
#include "run_command.h"

namespace wq::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

DumpedPool own_pool(int id, unsigned cpu, int nice, bool bh) {
    DumpedPool pool;
    pool.id = id;
    pool.refs = 1;
    pool.nice = nice;
    pool.idle = 1;
    pool.workers = 2;
    pool.cpu = cpu;
    pool.node = 0;
    pool.cpus = pool.pod_cpus = {cpu};
    pool.strict = true;
    pool.bh = bh;
    return pool;
}

DumpedPool shared_pool(int id, const CpuSet& pod, const CpuSet& cpus, int node) {
    DumpedPool pool;
    pool.id = id;
    pool.refs = 7;
    pool.workers = 3;
    pool.node = node;
    pool.pod_cpus = pod;
    pool.cpus = cpus;
    return pool;
}

DumpedWorkqueue workqueue(const std::string& name, const std::string& kind, std::map<unsigned, int> pools) {
    DumpedWorkqueue wq;
    wq.name = name;
    wq.kind = kind;
    wq.pools = std::move(pools);
    wq.max_active = 256;
    return wq;
}

// CPUs 0 and 1 are online, CPU 2 is possible but offline; two caches.
KernelDump sample() {
    KernelDump dump;
    dump.default_scope = Scope::cache;
    dump.unbound = {0, 1};
    dump.requested = CpuSet{0, 1, 2};
    dump.isolated = CpuSet{2};
    dump.scopes = {{Scope::cache, {{{0, 2}, 0}, {{1}, 1}}}, {Scope::system, {{{0, 1, 2}, -1}}}};
    dump.pools = {own_pool(0, 0, 0, true),        own_pool(1, 0, 0, false),
                  own_pool(2, 0, -20, false),     own_pool(4, 1, 0, false),
                  own_pool(5, 1, -20, false),     shared_pool(8, {0}, {0, 1}, 0),
                  shared_pool(9, {1}, {0, 1}, 1), shared_pool(12, {0, 1}, {0, 1}, -1)};
    auto events = workqueue("events", "per-cpu", {{0, 1}, {1, 4}});
    events.flags = {"percpu"};
    auto writeback = workqueue("writeback", "unbound", {{0, 8}, {1, 9}, {2, 8}});
    writeback.flags = {"unbound", "mem_reclaim", "sysfs"};
    writeback.attrs = DumpedAttrs{"default", Scope::cache, false, 0, {0, 1, 2}};
    writeback.default_pool = 12;
    writeback.nodes = {{0, 3, 16}, {-1, 0, 8}};
    writeback.rescuer = DumpedRescuer{"kworker/R-write", 127, {0, 1, 2}};
    auto netns = workqueue("netns", "ordered", {{0, 12}, {1, 12}, {2, 12}});
    netns.attrs = DumpedAttrs{"smt", Scope::smt, true, -5, {0, 1, 2}};
    netns.default_pool = 12;
    dump.workqueues = {events, writeback, netns, events};
    return dump;
}

KernelInfo kernel() {
    KernelInfo kernel;
    kernel.release = "6.12.1";
    kernel.scopes = {Scope::cache, Scope::system};
    return kernel;
}

std::vector<int> ids(const KernelDump& dump) {
    std::vector<int> out;
    for (const auto& pool : dump.pools) out.push_back(pool.id);
    return out;
}

TEST(Dump, JsonHasAll) {
    const auto json = kernel_dump_json(sample(), kernel());
    EXPECT_EQ(json["kernel"].dump(),
              R"({"cache_shard_size":null,"release":"6.12.1","scopes":["cache","system"]})");
    EXPECT_EQ(json["default_scope"], "cache");
    EXPECT_EQ(json["masks"].dump(), R"({"unbound":"0-1","requested":"0-2","isolated":"2"})");
    EXPECT_EQ(json["scopes"][0].dump(),
              R"({"scope":"cache","nr_pods":2,"pods":[{"cpus":"0,2","node":0},{"cpus":"1","node":1}],)"
              R"("cpu_pod":{"0":0,"1":1,"2":0}})");
    EXPECT_EQ(json["scopes"][1]["pods"][0]["node"], nullptr);
    EXPECT_EQ(json["pools"].size(), 8U);
    EXPECT_EQ(json["pools"][2].dump(),
              R"({"id":2,"ref":1,"nice":-20,"idle":1,"workers":2,"cpu":0,"node":0,"cpus":"0","pod_cpus":"0",)"
              R"("strict":true,"bh":false})");
    EXPECT_EQ(json["pools"][7].dump(),
              R"({"id":12,"ref":7,"nice":0,"idle":0,"workers":3,"cpu":null,"node":null,"cpus":"0-1",)"
              R"("pod_cpus":"0-1","strict":false,"bh":false})");
    EXPECT_EQ(json["workqueues"][1].dump(),
              R"({"name":"writeback","kind":"unbound","flags":["unbound","mem_reclaim","sysfs"],)"
              R"("scope":"default","effective":"cache","strict":false,"nice":0,"cpus":"0-2",)"
              R"("pools":{"0":8,"1":9,"2":8},"default_pool":12,"max_active":256,)"
              R"("nodes":[{"node":0,"active":3,"max":16},{"node":null,"active":0,"max":8}],)"
              R"("rescuer":{"name":"kworker/R-write","pid":127,"cpus":"0-2"}})");
}

TEST(Dump, WhatAWorkqueueDoesNotHaveIsNullOrNotThere) {
    const auto events = kernel_dump_json(sample(), kernel())["workqueues"][0];
    EXPECT_FALSE(events.contains("scope"));
    EXPECT_EQ(events["default_pool"], nullptr);
    EXPECT_EQ(events["nodes"].dump(), "[]");
    EXPECT_EQ(events["rescuer"], nullptr);
}

TEST(Dump, WhatAKernelDoesNotHaveIsNull) {
    KernelDump old = sample();
    old.requested = old.isolated = std::nullopt;
    old.default_scope = std::nullopt;
    const auto json = kernel_dump_json(old, kernel());
    EXPECT_EQ(json["masks"]["requested"], nullptr);
    EXPECT_EQ(json["masks"]["isolated"], nullptr);
    EXPECT_EQ(json["default_scope"], nullptr);
    EXPECT_THAT(kernel_dump_text(old, kernel(), 80, false), Not(HasSubstr("isolated")));
}

TEST(Dump, NoNameIsAll) {
    const auto all = dump_of(sample(), {});
    ASSERT_TRUE(all);
    EXPECT_EQ(all->workqueues.size(), 4U);
    EXPECT_EQ(all->pools.size(), 8U);
}

TEST(Dump, ANameKeepsItsPoolsAndTheDefaultOne) {
    const auto one = dump_of(sample(), {"writeback"});
    ASSERT_TRUE(one);
    ASSERT_EQ(one->workqueues.size(), 1U);
    EXPECT_EQ(one->workqueues[0].name, "writeback");
    EXPECT_THAT(ids(*one), ElementsAre(8, 9, 12));
    EXPECT_EQ(one->scopes.size(), 2U);
}

TEST(Dump, SeveralOfAName) {
    const auto both = dump_of(sample(), {"events"});
    ASSERT_TRUE(both);
    EXPECT_EQ(both->workqueues.size(), 2U);
    EXPECT_THAT(ids(*both), ElementsAre(1, 4));
}

TEST(Dump, ANameThatNoneHas) {
    const auto none = dump_of(sample(), {"writeback", "writebac"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().text, "there is no workqueue 'writebac'");
    EXPECT_EQ(none.error().code, ENOENT);
}

TEST(Dump, TextForPeople) {
    EXPECT_EQ(kernel_dump_text(sample(), kernel(), 80, false), R"(kernel 6.12.1, default scope cache
unbound work on CPUs 0-1, requested 0-2, isolated 2

Affinity scopes
SCOPE   PODS  NODES  CPUS OF EACH POD
cache   2     0-1    0,2 1
system  1     -      0-2

Pools of one CPU: ID (idle/workers)
CPU  NICE 0   NICE -20  BH NICE 0
0    1 (1/2)  2 (1/2)   0
1    4 (1/2)  5 (1/2)   -

Unbound pools
POOL  REFS  NICE  IDLE  WORKERS  NODE  STRICT  CPUS
8     7     0     0     3        0     no      0 of 0-1
9     7     0     0     3        1     no      1 of 0-1
12    7     0     0     3        -     no      0-1

Workqueues
WORKQUEUE  KIND     SCOPE       POOL: CPUS
events     per-cpu  -           own, NICE 0
writeback  unbound  default     8: 0,2  9: 1  default: 12
netns      ordered  smt strict  12: 0-2  default: 12
events     per-cpu  -           own, NICE 0

Unbound work that runs
WORKQUEUE  MAX  ACTIVE/MAX BY NODE
writeback  256  0: 3/16  none: 0/8

Rescuers
WORKQUEUE  RESCUER          PID  CPUS
writeback  kworker/R-write  127  0-2
)");
}

// Pools of two kinds, or another CPU's pool: the text then lists the pools and does not say "own".
TEST(Dump, PerCpuWorkOnAnotherPoolIsShown) {
    KernelDump dump = sample();
    dump.workqueues = {workqueue("mixed", "per-cpu", {{0, 1}, {1, 5}}),
                       workqueue("moved", "per-cpu", {{0, 4}, {1, 4}})};
    const auto text = kernel_dump_text(dump, kernel(), 80, false);
    EXPECT_THAT(text, HasSubstr("1: 0  5: 1"));
    EXPECT_THAT(text, HasSubstr("4: 0-1"));
    EXPECT_THAT(text, Not(HasSubstr("own, ")));
}

TEST(Dump, FitsATerminalOnALargeMachine) {
    KernelDump dump = sample();
    std::vector<KernelPod> pods;
    std::map<unsigned, int> pools;
    for (unsigned cpu = 0; cpu < 1024; cpu++) {
        pods.push_back({{cpu}, static_cast<int>(cpu / 512)});
        pools[cpu] = static_cast<int>(3000 + cpu / 8);
    }
    dump.scopes[Scope::cpu] = pods;
    auto wide = workqueue("a_name_of_as_many_as_31_letters", "unbound", pools);
    wide.attrs = DumpedAttrs{"cache_shard", Scope::cache_shard, true, 0, CpuSet::range(0, 1023)};
    dump.workqueues.assign(60, wide);
    std::istringstream lines(kernel_dump_text(dump, kernel(), 80, false));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); count++) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_GT(count, 120U);
}

TEST(Dump, AHostileNameDoesNotReachTheTerminal) {
    KernelDump dump = sample();
    dump.workqueues = {workqueue("evil\x1b[2J", "per-cpu", {})};
    EXPECT_THAT(kernel_dump_text(dump, kernel(), 80, false), Not(HasSubstr("\x1b")));
}

TEST(Dump, IsOfTheRunningKernelOnly) {
    EXPECT_EQ(test::run_command(set_up_dump, {}, {.root = "/nowhere", .command = {}}), kUsage);
}

}  // namespace
}  // namespace wq::ctl
