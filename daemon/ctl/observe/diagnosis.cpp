// SPDX-License-Identifier: LGPL-2.1-or-later
// CPU time is attributed to work in one of three ways, the first that this kernel supports:
//   ticks       Each scheduler tick that finds a kworker running is a sample of its function. The exact CPU
//               time of the task is divided by its samples. Work in soft interrupts has no kworker: its time
//               from start to end is used.
//   statistics  PWQ_STAT_CPU_TIME of each workqueue is divided among its functions by the time that they
//               took, at most that; the rest belongs to items that did not end.
//   names       CPU time of each kworker, by the name that the kernel gives its work.
// The first two do not see a CPU without a tick (nohz_full). The total is that of the tasks.
#include "ctl/observe/diagnosis.h"

#include <algorithm>
#include <map>
#include <utility>

#include "machine/workqueue.h"

namespace wq::ctl {
namespace {

constexpr std::uint64_t kEnoughItems = 20;  // for a mean of others to compare with

double cpus_of(std::uint64_t ns, double seconds) {
    return static_cast<double>(ns) / 1e9 / seconds;
}

// How many pods of SCOPE contain one of CPUS.
std::size_t pods_on(const KernelDump& dump, Scope scope, const CpuSet& cpus) {
    const auto at = dump.scopes.find(scope);
    if (at == dump.scopes.end()) return 0;
    return static_cast<std::size_t>(
        std::ranges::count_if(at->second, [&](const KernelPod& pod) { return pod.cpus.intersects(cpus); }));
}

// Adds the scopes that are worth a comparison.
void add_scopes(DiagnosedWorkqueue& out, const KernelDump& dump, const DumpedWorkqueue& wq,
                const CpuSet& online) {
    if (!wq.attrs || !wq.attrs->effective || wq.max_active <= 1 || wq.kind != "unbound") return;
    const Scope now = *wq.attrs->effective;
    CpuSet cpus = wq.attrs->cpus & dump.unbound & online;
    if (cpus.empty()) cpus = dump.unbound & online;
    const std::size_t pods = pods_on(dump, now, cpus);
    out.scope = now;
    std::size_t most = pods;
    for (auto scope = kAllScopes.rbegin(); scope != kAllScopes.rend(); ++scope) {
        const std::size_t count = pods_on(dump, *scope, cpus);
        if (*scope >= now || count <= most) continue;
        out.finer.push_back(*scope);
        most = count;
    }
    // Coarser scopes are only added if a scope such as `cache` gives each core its own pool, because each
    // cache belongs to one core, as in many virtual machines. Nobody chose this.
    if (now <= Scope::smt || pods <= 1 || pods != pods_on(dump, Scope::smt, cpus)) return;
    std::size_t least = pods;
    for (const Scope scope : kAllScopes) {
        const std::size_t count = pods_on(dump, scope, cpus);
        if (scope <= now || count == 0 || count >= least) continue;
        out.coarser.push_back(scope);
        least = count;
    }
}

// How many CPUs and other workqueues share the pools of WQ.
void add_pools(DiagnosedWorkqueue& out, const KernelDump& dump, const DumpedWorkqueue& wq,
               const CpuSet& online) {
    std::map<int, std::size_t> cpus_by_pool;
    for (const auto& [cpu, pool] : wq.pools)
        if (online.has(cpu)) out.pool_cpus = std::max(out.pool_cpus, ++cpus_by_pool[pool]);
    for (const auto& other : dump.workqueues) {
        if (&other == &wq) continue;
        out.pool_shared += std::ranges::any_of(
            other.pools, [&](const auto& entry) { return cpus_by_pool.contains(entry.second); });
    }
}

// The unbound workqueue of DUMP with this name; nullptr if there is none or several.
const DumpedWorkqueue* find_dumped(const KernelDump& dump, const std::string& name) {
    const DumpedWorkqueue* found = nullptr;
    for (const auto& one : dump.workqueues) {
        if (one.name != name || !one.attrs) continue;
        if (found != nullptr) return nullptr;
        found = &one;
    }
    return found;
}

void add_events(DiagnosedWorkqueue& out, const WorkqueueRow& row) {
    if (row.reset) return;
    const KernelWorkqueue &before = row.before, &now = row.now;
    const auto since = [&](bool applies, std::uint64_t KernelWorkqueue::*count) {
        return applies && now.*count >= before.*count ? std::optional(now.*count - before.*count)
                                                      : std::nullopt;
    };
    out.items = row.items;
    out.cpu_hogs = since(now.managed, &KernelWorkqueue::cpu_intensive);
    out.cm_wakeups = since(now.managed, &KernelWorkqueue::cm_wakeup);
    out.repatriated = since(now.unbound, &KernelWorkqueue::repatriated);
    out.mayday = since(now.mem_reclaim, &KernelWorkqueue::mayday);
    out.rescued = since(now.mem_reclaim, &KernelWorkqueue::rescued);
    const bool stalled =
        before.in_flight > 0 && now.started == before.started && now.completed == before.completed;
    out.stalled = stalled ? now.in_flight : 0;
}

void add_lock(DiagnosedWorkqueue& out, const WorkqueueRow& row) {
    out.lock_ns = row.lock;
    if (!row.lock) return;
    out.lock_cpu = *row.lock * row.per_second / 1e9;
    if (row.wait && *row.wait > 0) out.lock_share = std::min(1.0, *row.lock / *row.wait);
}

// The lowest mean wait for pool->lock of other workqueues than OWN.
std::optional<double> lowest_lock(const TopInterval& work, const WorkqueueRow& own) {
    std::optional<double> out;
    for (const WorkqueueRow& row : work.workqueues)
        if (&row != &own && row.lock && row.timed >= kEnoughItems)
            out = std::min(*row.lock, out.value_or(*row.lock));
    return out;
}

// The mean time from start to end of the items of the workqueue with this ID.
std::optional<double> mean_exec(const TopInterval& work, unsigned id) {
    double items = 0, ns = 0;
    for (const FunctionRow& row : work.functions) {
        if (row.id != id) continue;
        items += static_cast<double>(row.items);
        ns += static_cast<double>(row.items) * row.mean;
    }
    return items > 0 ? std::optional(ns / items) : std::nullopt;
}

void add_contention(DiagnosedWorkqueue& out, const TopInterval& work, const WorkqueueRow& row) {
    if (row.q50) out.enqueue = EnqueueTimes{*row.q50, *row.q90, *row.q95, *row.q99};
    const auto lowest = lowest_lock(work, row);
    if (!row.lock || !lowest) return;
    out.contention_ns = std::max(0.0, *row.lock - *lowest);
    const auto exec = mean_exec(work, row.id);
    if (row.wait && exec) out.contention_share = std::min(1.0, *out.contention_ns / (*row.wait + *exec));
}

class Diagnoser {
  public:
    explicit Diagnoser(const DiagnoseLook& look) : look_(look) {
        if (!look.work) return;
        for (const auto& row : look.work->workqueues) {
            rows_[row.now.address] = &row;
            addresses_[row.id] = row.now.address;
        }
    }

    Diagnosis all() {
        out_.seconds = look_.seconds;
        out_.online = look_.online.count();
        out_.isolated_cpus = look_.isolated;
        out_.bypassed = look_.bypassed;
        out_.hog_ns = look_.hog_ns;
        out_.missing = look_.missing;
        for (const auto& use : look_.kworkers) {
            out_.cpu += cpus_of(use.cpu_ns, look_.seconds);
            if (use.stuck) out_.stuck.push_back({use.name, use.work, use.sleeps_in});
        }
        if (look_.sampled && look_.profile)
            add_ticks();
        else if (look_.work)
            add_statistics();
        else
            add_names();
        if (look_.work) add_functions();
        collect();
        if (look_.profile) {
            std::map<std::uint64_t, KernelWorkqueue> workqueues;
            for (const auto& [address, row] : rows_) workqueues[address] = row->now;
            out_.isolated = isolated_findings(look_.profile->isolated, workqueues);
        }
        return std::move(out_);
    }

  private:
    using Key = std::pair<std::uint64_t, std::string>;  // address of the workqueue, function

    void add_ticks() {
        out_.by = "ticks";
        std::map<int, std::uint64_t> sampled;  // ns in ticks, by pid
        for (const auto& ran : look_.profile->ran) sampled[ran.pid] += ran.cpu_ns;
        std::map<int, const KworkerUse*> uses;
        for (const auto& use : look_.kworkers) {
            uses[use.pid] = &use;
            if (!sampled.contains(use.pid)) out_.unsampled += cpus_of(use.cpu_ns, look_.seconds);
        }
        for (const auto& ran : look_.profile->ran) {
            if (!rows_.empty() && !rows_.contains(ran.workqueue)) continue;  // the workqueue is gone
            const auto at = uses.find(ran.pid);
            KworkerShare share{ran.kworker, cpus_of(ran.cpu_ns, look_.profile_seconds), {}};
            if (at != uses.end()) {
                const double part = static_cast<double>(ran.cpu_ns) / static_cast<double>(sampled[ran.pid]);
                share = {at->second->name, part * cpus_of(at->second->cpu_ns, look_.seconds),
                         at->second->cpus};
            }
            if (rows_.empty())
                words_[ran.workqueue] = at != uses.end() ? at->second->work : "an unknown workqueue";
            BusyWork& work = work_[{ran.workqueue, ran.function}];
            work.cpu += share.cpu;
            work.longest_ns = std::max(work.longest_ns.value_or(0), static_cast<double>(ran.longest_ns));
            work.kworkers.push_back(std::move(share));
        }
    }

    void add_statistics() {
        out_.by = "statistics";
        std::map<unsigned, double> busy;  // workers, by the id of the workqueue
        for (const auto& row : look_.work->functions) busy[row.id] += row.busy;
        // If the kernel counted more CPU time than the functions took, items that still run used the rest.
        for (const auto& row : look_.work->functions) {
            const double all = rows_.at(addresses_.at(row.id))->cpu.value_or(0);
            work_[{addresses_.at(row.id), row.function}].cpu +=
                busy[row.id] > all ? all * row.busy / busy[row.id] : row.busy;
        }
        for (const auto& [address, row] : rows_)
            if (const double rest = row->cpu.value_or(0) - busy[row->id]; rest > 0)
                work_[{address, ""}].cpu += rest;
    }

    // The addresses of the workqueues are not known here, so each name gets a number instead: 1, 2, ...
    void add_names() {
        std::map<std::string, std::uint64_t> addresses;
        for (const auto& use : look_.kworkers)
            for (const auto& [name, ns] : use.by_work) {
                const auto address = addresses.try_emplace(name, addresses.size() + 1).first->second;
                BusyWork& work = work_[{address, ""}];
                const double cpu = cpus_of(ns, look_.seconds);
                work.cpu += cpu;
                work.kworkers.push_back({use.name, cpu, use.cpus});
                words_[address] = name;
            }
    }

    // Adds what the monitor measured of each function. Work in soft interrupts is known from the monitor
    // only.
    void add_functions() {
        for (const auto& row : look_.work->functions) {
            const std::uint64_t address = addresses_.at(row.id);
            const bool bh = rows_.at(address)->now.bh;
            const auto at = work_.find({address, row.function});
            if (at == work_.end() && !bh) continue;
            BusyWork& work = work_[{address, row.function}];
            if (bh) work.cpu = row.busy;
            work.per_second = row.per_second;
            work.mean_ns = row.mean;
        }
        if (!look_.sampled || !look_.profile) add_kworkers_by_name();
    }

    // Without ticks, the names of their work tell which kworkers served a workqueue. They are added to its
    // most costly function.
    void add_kworkers_by_name() {
        std::map<std::string, BusyWork*> costly;
        for (auto& [key, work] : work_) {
            const auto row = rows_.find(key.first);
            if (row == rows_.end()) continue;
            BusyWork*& most = costly[row->second->now.name];
            if (most == nullptr || work.cpu > most->cpu) most = &work;
        }
        for (const auto& use : look_.kworkers)
            for (const auto& [name, ns] : use.by_work) {
                const auto at = costly.find(sysfs_name(name));
                if (at != costly.end())
                    at->second->kworkers.push_back({use.name, cpus_of(ns, look_.seconds), use.cpus});
            }
    }

    void collect() {
        std::vector<std::pair<std::uint64_t, BusyWork>> sorted;
        for (auto& [key, work] : work_) {
            if (work.cpu <= 0) continue;
            work.function = key.second;
            std::ranges::stable_sort(work.kworkers, std::ranges::greater{}, &KworkerShare::cpu);
            sorted.emplace_back(key.first, std::move(work));
        }
        std::ranges::stable_sort(sorted, std::ranges::greater{},
                                 [](const auto& one) { return one.second.cpu; });
        for (auto& [address, work] : sorted) {
            work.workqueue = index_of(address);
            out_.workqueues[work.workqueue].cpu += work.cpu;
            out_.work.push_back(std::move(work));
        }
        for (const auto& [address, row] : rows_)
            if (!index_.contains(address) && describe(address).has_events()) index_of(address);
    }

    [[nodiscard]] DiagnosedWorkqueue describe(std::uint64_t address) const {
        DiagnosedWorkqueue out;
        const auto words = words_.find(address);
        if (words != words_.end()) out.name = words->second;
        const auto at = rows_.find(address);
        if (at == rows_.end()) return out;
        const WorkqueueRow& row = *at->second;
        out.id = row.id;
        out.name = row.now.name;
        out.kind = row.now.bh ? "bh" : row.now.unbound ? "unbound" : "per-cpu";
        add_events(out, row);
        add_lock(out, row);
        add_contention(out, *look_.work, row);
        if (!row.now.unbound) return out;
        const DumpedWorkqueue* dumped = look_.dump ? find_dumped(*look_.dump, out.name) : nullptr;
        if (dumped == nullptr) return out;
        out.kind = dumped->kind;
        out.max_active = dumped->max_active;
        if (out.kind == "unbound" && dumped->max_active > 1)  // no scope makes other work faster
            out.target = row.now.in_sysfs ? out.name : row.now.follows_default ? kDefaultTarget : "";
        add_scopes(out, *look_.dump, *dumped, look_.online);
        add_pools(out, *look_.dump, *dumped, look_.online);
        return out;
    }

    std::size_t index_of(std::uint64_t address) {
        const auto [at, is_new] = index_.try_emplace(address, out_.workqueues.size());
        if (is_new) out_.workqueues.push_back(describe(address));
        return at->second;
    }

    const DiagnoseLook& look_;
    std::map<std::uint64_t, const WorkqueueRow*> rows_;
    std::map<unsigned, std::uint64_t> addresses_;  // by the id of the row
    std::map<Key, BusyWork> work_;
    std::map<std::uint64_t, std::string> words_;  // names of workqueues that have no row
    std::map<std::uint64_t, std::size_t> index_;
    Diagnosis out_;
};

}  // namespace

Diagnosis diagnose(const DiagnoseLook& look) {
    return Diagnoser(look).all();
}

void KworkerWatch::add(const std::vector<Kworker>& reading) {
    readings_++;
    for (const Kworker& now : reading) {
        const auto [at, is_new] = seen_.try_emplace(now.pid);
        Seen& seen = at->second;
        const bool same = !is_new && seen.last.name == now.name && now.cpu_ns >= seen.last.cpu_ns;
        if (!same) seen = Seen{};
        // A kworker that is not in the previous readings has started since, so all of its CPU time counts.
        const bool counts = same || readings_ > 1;
        const std::uint64_t used = counts ? now.cpu_ns - (same ? seen.last.cpu_ns : 0) : 0;
        seen.use.pid = now.pid;
        seen.use.name = now.name;
        seen.use.work = now.work;
        seen.use.cpu_ns += used;
        if (used > 0) seen.use.by_work[now.work] += used;
        const bool slept_on = seen.readings == 0 || seen.last.runs == now.runs;
        seen.readings = now.busy && now.state == 'D' ? (slept_on ? seen.readings + 1 : 1) : 0;
        seen.last = now;
    }
}

std::vector<KworkerUse> KworkerWatch::uses() const {
    std::vector<KworkerUse> out;
    for (const auto& [pid, seen] : seen_) {
        const bool stuck = readings_ > 1 && seen.readings == readings_;
        if (seen.use.cpu_ns == 0 && !stuck) continue;
        out.push_back(seen.use);
        out.back().stuck = stuck;
    }
    return out;
}

}  // namespace wq::ctl
