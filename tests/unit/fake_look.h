// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "ctl/observe/diagnosis.h"
#include "fake_monitor.h"

namespace wq::test {

// Eight CPUs, each of them a core, in an LLC of three and one of five. kcryptd-254:0-1 and writeback share
// the pools of scope cache.
inline KernelDump dump_of_two_caches() {
    KernelDump dump;
    dump.default_scope = Scope::cache;
    dump.unbound = CpuSet::range(0, 7);
    std::vector<KernelPod> cores;
    for (unsigned cpu = 0; cpu < 8; cpu++) cores.push_back({{cpu}, 0});
    dump.scopes = {{Scope::cpu, cores},
                   {Scope::smt, cores},
                   {Scope::cache, {{CpuSet::range(0, 2), 0}, {CpuSet::range(3, 7), 0}}},
                   {Scope::numa, {{CpuSet::range(0, 7), 0}}},
                   {Scope::system, {{CpuSet::range(0, 7), -1}}}};
    DumpedWorkqueue crypt;
    crypt.name = "kcryptd-254:0-1";
    crypt.kind = "unbound";
    crypt.max_active = 64;
    crypt.attrs = DumpedAttrs{"default", Scope::cache, false, 0, CpuSet::range(0, 7)};
    for (unsigned cpu = 0; cpu < 8; cpu++) crypt.pools[cpu] = cpu < 3 ? 16 : 17;
    DumpedWorkqueue writeback = crypt;
    writeback.name = "writeback";
    DumpedWorkqueue other = crypt;
    other.name = "other";
    for (auto& [cpu, pool] : other.pools) pool = 18;
    dump.workqueues = {crypt, writeback, other};
    return dump;
}

// A look of two seconds with CPU 3 offline. kcryptd used 1.2 CPUs in two kworkers (one has exited), per-CPU
// work 0.25 CPUs, and BH work 0.05 CPUs.
inline ctl::DiagnoseLook busy_look() {
    ctl::DiagnoseLook look;
    look.seconds = 2;
    look.online = CpuSet::range(0, 7) - CpuSet{3};
    look.dump = dump_of_two_caches();
    look.ran = {{10, "kcryptd_crypt [dm_crypt]", 103, "kworker/u9:3", 1'600'000'000, 3'000'000},
                {20, "vmstat_update", 104, "kworker/0:1", 500'000'000, 2'000'000},
                {10, "kcryptd_crypt [dm_crypt]", 105, "kworker/u9:4", 800'000'000, 34'000'000}};
    ctl::KworkerUse first, second;
    first.pid = 103;
    first.name = "kworker/u9:3";
    first.cpu_ns = 1'600'000'000;
    first.cpus = CpuSet::range(0, 7);
    second.pid = 104;
    second.name = "kworker/0:1";
    second.cpu_ns = 500'000'000;
    second.cpus = {0};
    look.kworkers = {first, second};

    ctl::WorkqueueRow crypt, percpu, bh;
    crypt.id = 1;
    crypt.now = workqueue(10, "kcryptd-254:0-1");
    crypt.now.unbound = crypt.now.in_sysfs = true;
    crypt.now.managed = false;
    crypt.items = 2000;
    crypt.per_second = 1000;
    crypt.cpu = 1.2;
    crypt.wait = 40'000;
    crypt.lock = 20'000;
    percpu.id = 2;
    percpu.now = workqueue(20, "mm_percpu_wq");
    percpu.items = 100;
    percpu.per_second = 50;
    percpu.cpu = 0.25;
    bh.id = 3;
    bh.now = workqueue(30, "bh_wq");
    bh.now.bh = true;
    bh.now.managed = false;
    for (auto* row : {&crypt, &percpu, &bh}) row->before = row->now;
    look.work.seconds = 2;
    look.work.workqueues = {crypt, percpu, bh};
    look.work.functions = {{1, "kcryptd-254:0-1", "kcryptd_crypt [dm_crypt]", 2000, 1000, 1.5, 1.5e6},
                           {2, "mm_percpu_wq", "vmstat_update", 100, 50, 0.25, 5e6},
                           {3, "bh_wq", "tasklet_work", 10, 5, 0.05, 1e7}};
    return look;
}

inline ctl::DiagnoseLook idle_look() {
    auto look = busy_look();
    look.ran->clear();
    look.work.functions.clear();
    look.kworkers.clear();
    return look;
}

inline ctl::KworkerUse stuck_kworker() {
    ctl::KworkerUse out;
    out.name = "kworker/3:1";
    out.work = "md_misc";
    out.stuck = true;
    out.sleeps_in = "blk_mq_freeze_queue_wait";
    return out;
}

}  // namespace wq::test
