// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/dump_command.h"

#include <gmock/gmock.h>

#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::SizeIs;

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
              R"("rescuer":{"name":"kworker/R-write","pid":127,"cpus":"0-2"}})");
    EXPECT_EQ(json["workqueues"][0].dump(),
              R"({"name":"events","kind":"per-cpu","flags":["percpu"],"pools":{"0":1,"1":4},)"
              R"("default_pool":null,"max_active":256,"rescuer":null})");
}

TEST(Dump, WhatAKernelDoesNotHaveIsNull) {
    const auto json = kernel_dump_json({}, kernel());
    EXPECT_EQ(json["masks"].dump(), R"({"unbound":"","requested":null,"isolated":null})");
    EXPECT_EQ(json["default_scope"], nullptr);
}

TEST(Dump, TextForPeople) {
    EXPECT_EQ(kernel_dump_text(sample(), kernel(), 80, false), R"(kernel 6.12.1, default scope cache
unbound work on CPUs 0-1, requested 0-2, isolated 2

Affinity scopes
SCOPE   PODS  NODES  CPUS OF EACH POD
cache   2     0-1    0,2 1
system  1     -      0-2

Pools
POOL  KIND     REFS  NICE  IDLE  WORKERS  NODE  STRICT  CPUS
0     bh       1     0     1     2        0     yes     0
1     per-cpu  1     0     1     2        0     yes     0
2     per-cpu  1     -20   1     2        0     yes     0
4     per-cpu  1     0     1     2        0     yes     1
5     per-cpu  1     -20   1     2        0     yes     1
8     unbound  7     0     0     3        0     no      0 of 0-1
9     unbound  7     0     0     3        1     no      1 of 0-1
12    unbound  7     0     0     3        -     no      0-1

Workqueues
WORKQUEUE  KIND     MAX  SCOPE       POOL: CPUS
events     per-cpu  256  -           own
writeback  unbound  256  default     8: 0,2  9: 1  default: 12
netns      ordered  256  smt strict  12: 0-2  default: 12
events     per-cpu  256  -           own

Rescuers
WORKQUEUE  RESCUER          PID  CPUS
writeback  kworker/R-write  127  0-2
)");
}

// Another CPU's pool: the text then lists the pools and does not say "own".
TEST(Dump, PerCpuWorkOnAnotherPoolIsShown) {
    KernelDump dump = sample();
    dump.workqueues = {workqueue("moved\x1b[2J", "per-cpu", {{0, 4}, {1, 4}})};
    const auto text = kernel_dump_text(dump, kernel(), 80, false);
    EXPECT_THAT(text, testing::Not(HasSubstr("\x1b"))) << "no control character reaches the terminal";
    EXPECT_THAT(text, HasSubstr("4: 0-1"));
    EXPECT_THAT(text, testing::Not(HasSubstr("own")));
}

TEST(Dump, IsOfTheRunningKernelOnly) {
    EXPECT_EQ(test::run_command(set_up_dump, {}, {.root = "/nowhere", .command = {}}), kUsage);
}

ordered_json old_kernel() {
    return ordered_json::parse(R"({
        "kernel": {"release": "6.12.107"}, "default_scope": "cache",
        "masks": {"unbound": "0-3", "requested": "0-3", "isolated": ""},
        "scopes": [{"scope": "cache", "nr_pods": 1}, {"scope": "system", "nr_pods": 1}],
        "pools": [],
        "workqueues": [
            {"name": "writeback", "kind": "unbound", "flags": ["unbound", "sysfs"], "scope": "default",
             "effective": "cache", "strict": false, "nice": 0, "cpus": "0-3",
             "pools": {"0": 8, "1": 8, "2": 8, "3": 8}, "max_active": 256},
            {"name": "events", "kind": "per-cpu", "flags": ["percpu"], "pools": {"0": 0, "1": 2},
             "max_active": 256},
            {"name": "events", "kind": "per-cpu", "flags": ["percpu", "highpri"], "pools": {"0": 1, "1": 3},
             "max_active": 256},
            {"name": "old_wq", "kind": "per-cpu", "flags": ["percpu"], "pools": {"0": 0}, "max_active": 1}]})");
}

// The pools have different ids; writeback has one pool for each half of the CPUs.
ordered_json new_kernel() {
    auto out = old_kernel();
    out["kernel"]["release"] = "7.2.13";
    out["default_scope"] = "cache_shard";
    out["scopes"].push_back({{"scope", "cache_shard"}, {"nr_pods", 2}});
    auto& all = out["workqueues"];
    all[0]["effective"] = "cache_shard";
    all[0]["pools"] = {{"0", 20}, {"1", 20}, {"2", 21}, {"3", 21}};
    all[1]["pools"] = {{"0", 4}, {"1", 6}};
    all[2]["kind"] = "unbound";
    all[2]["flags"] = {"unbound", "highpri"};
    all[2]["scope"] = "smt";
    all[3]["name"] = "new_wq";
    return out;
}

TEST(DumpDiff, FindsWhatChangedBetweenKernels) {
    const auto diff = dump_diff(old_kernel(), new_kernel());
    ASSERT_TRUE(diff);
    const json all = *diff;
    EXPECT_EQ(all.at("kernel"), json::parse(R"([{"what": "release", "before": "6.12.107", "after": "7.2.13"},
                              {"what": "default scope", "before": "cache", "after": "cache_shard"},
                              {"what": "pods of cache_shard", "before": "", "after": "2"}])"));
    ASSERT_THAT(all.at("workqueues"), SizeIs(2)) << "the first events differs in its pools' ids alone";
    EXPECT_EQ(all.at("workqueues")[1], json::parse(R"json({"name": "writeback", "changes": [
                  {"what": "scope", "before": "default (cache)", "after": "default (cache_shard)"},
                  {"what": "pools", "before": "0-3", "after": "0-1 2-3"}]})json"));
    EXPECT_EQ(all.at("gone"), json({"old_wq"}));
    EXPECT_EQ(all.at("new"), json({"new_wq"}));
    EXPECT_EQ(dump_diff_text(*diff, 80, false), R"(release: 6.12.107 -> 7.2.13
default scope: cache -> cache_shard
pods of cache_shard: - -> 2

WORKQUEUE  WHAT   BEFORE -> NOW
events     kind   per-cpu -> unbound
           flags  percpu highpri -> unbound highpri
           scope  - -> smt
writeback  scope  default (cache) -> default (cache_shard)
           pools  0-3 -> 0-1 2-3

gone: old_wq
new: new_wq
)");
    EXPECT_EQ(dump_diff_text(*dump_diff(old_kernel(), old_kernel()), 80, false), "no difference\n");
}

TEST(DumpDiff, NeedsTwoDumps) {
    auto bad_pool = old_kernel(), bad_name = old_kernel(), bad_list = old_kernel();
    bad_list["workqueues"] = 7;
    bad_pool["workqueues"][0]["pools"] = {{"first", 8}};
    bad_name["workqueues"][0]["name"] = 7;
    for (const auto& bad : {ordered_json::object(), bad_pool, bad_name, bad_list}) {
        EXPECT_FALSE(dump_diff(bad, old_kernel())) << bad;
        EXPECT_FALSE(dump_diff(old_kernel(), bad)) << bad;
    }
}

TEST(DumpFile, IsReadOrAnErrorThatNamesIt) {
    test::TempTree tree;
    tree.write("old.json", old_kernel().dump());
    EXPECT_EQ(read_dump_file(tree.path("old.json")).value(), old_kernel());
    for (const char* text : {"", "{", "[]", "7"}) {
        tree.write("old.json", text);
        const auto read = read_dump_file(tree.path("old.json"));
        ASSERT_FALSE(read) << text;
        EXPECT_THAT(read.error().text, HasSubstr("old.json: not the output of"));
    }
    EXPECT_THAT(read_dump_file(tree.path("none.json")).error().text, HasSubstr("none.json"));
}

}  // namespace
}  // namespace wq::ctl
