// SPDX-License-Identifier: LGPL-2.1-or-later
// CPU time is attributed to work in one of two ways, the first that this kernel supports:
//   ticks       Each scheduler tick that finds a kworker running is a sample of its function. The exact CPU
//               time of the task is divided by its samples. Work in soft interrupts has no kworker: its time
//               from start to end is used.
//   statistics  PWQ_STAT_CPU_TIME of each workqueue is divided among its functions by the time that they
//               took, at most that; the rest belongs to items that did not end.
// Neither sees a CPU without a tick (nohz_full). The total is that of the tasks.
#include "ctl/observe/diagnosis.h"

#include <algorithm>
#include <utility>

#include "evidence/json_values.h"
#include "machine/workqueue.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

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
void add_scopes(Json& out, const KernelDump& dump, const DumpedWorkqueue& wq, const CpuSet& online) {
    if (!wq.attrs || !wq.attrs->effective || wq.max_active <= 1 || wq.kind != "unbound") return;
    const Scope now = *wq.attrs->effective;
    CpuSet cpus = wq.attrs->cpus & dump.unbound & online;
    if (cpus.empty()) cpus = dump.unbound & online;
    const std::size_t pods = pods_on(dump, now, cpus);
    out["scope"] = name_of(now);
    std::size_t most = pods;
    for (auto scope = kAllScopes.rbegin(); scope != kAllScopes.rend(); ++scope) {
        const std::size_t count = pods_on(dump, *scope, cpus);
        if (*scope >= now || count <= most) continue;
        out["finer"].push_back(name_of(*scope));
        most = count;
    }
    // Coarser scopes are only added if a scope such as `cache` gives each core its own pool, because each
    // cache belongs to one core, as in many virtual machines. Nobody chose this.
    if (now <= Scope::smt || pods <= 1 || pods != pods_on(dump, Scope::smt, cpus)) return;
    std::size_t least = pods;
    for (const Scope scope : kAllScopes) {
        const std::size_t count = pods_on(dump, scope, cpus);
        if (scope <= now || count == 0 || count >= least) continue;
        out["coarser"].push_back(name_of(scope));
        least = count;
    }
}

// How many CPUs and other workqueues share the pools of WQ.
void add_pools(Json& out, const KernelDump& dump, const DumpedWorkqueue& wq, const CpuSet& online) {
    std::map<int, std::size_t> cpus_by_pool;
    std::size_t most = 0, others = 0;
    for (const auto& [cpu, pool] : wq.pools)
        if (online.has(cpu)) most = std::max(most, ++cpus_by_pool[pool]);
    for (const auto& other : dump.workqueues)
        others += &other != &wq && std::ranges::any_of(other.pools, [&](const auto& entry) {
            return cpus_by_pool.contains(entry.second);
        });
    if (most == 0) return;
    out["pool_cpus"] = most;
    out["pool_shared"] = others;
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

// Adds the wait for pool->lock. Contention is the part above the lowest mean of any other workqueue in this
// look: what is below is the lock without contention, and our probe.
void add_lock(Json& out, const TopInterval& work, const WorkqueueRow& own) {
    if (!own.lock) return;
    out["lock_ns"] = *own.lock;
    out["lock_cpu"] = *own.lock * own.per_second / 1e9;
    if (own.wait && *own.wait > 0) out["lock_share"] = std::min(1.0, *own.lock / *own.wait);
    std::optional<double> lowest;
    for (const WorkqueueRow& row : work.workqueues)
        if (&row != &own && row.lock && row.timed >= kEnoughItems)
            lowest = std::min(*row.lock, lowest.value_or(*row.lock));
    if (!lowest) return;
    const double contention = std::max(0.0, *own.lock - *lowest);
    out["contention_ns"] = contention;
    double items = 0, exec = 0;
    for (const FunctionRow& row : work.functions) {
        if (row.id != own.id) continue;
        items += static_cast<double>(row.items);
        exec += static_cast<double>(row.items) * row.mean;
    }
    if (own.wait && items > 0)
        out["contention_share"] = std::min(1.0, contention / (*own.wait + exec / items));
}

// One kworker that served a function; CPU is in CPUs.
struct KworkerShare {
    std::string name;
    double cpu = 0;
    CpuSet cpus;
};

// One function of one workqueue.
struct BusyWork {
    double cpu = 0;
    std::vector<KworkerShare> kworkers;
    const FunctionRow* measured = nullptr;
    std::optional<double> longest_ns;
};

class Diagnoser {
  public:
    explicit Diagnoser(const DiagnoseLook& look) : look_(look) {
        for (const auto& row : look.work.workqueues) rows_[row.now.address] = ids_[row.id] = &row;
    }

    Json all() {
        Json stuck = Json::array(), bypassed = Json::array(), isolated = Json::array();
        double cpu = 0;
        for (const auto& use : look_.kworkers) {
            cpu += cpus_of(use.cpu_ns, look_.seconds);
            if (use.stuck)
                stuck.push_back({{"name", use.name},
                                 {"work", word_or_null(use.work)},
                                 {"sleeps_in", word_or_null(use.sleeps_in)}});
        }
        for (const auto& [workqueue, bypass] : look_.bypassed)
            bypassed.push_back({{"workqueue", workqueue}, {"options", bypass.options()}});
        for (const auto& [workqueue, items] : look_.on_isolated)
            if (items > 0) isolated.push_back({{"workqueue", workqueue}, {"items", items}});
        look_.ran ? add_ticks() : add_statistics();
        add_functions();
        collect();
        return {{"seconds", look_.seconds},
                {"online", look_.online.count()},
                {"cpu", cpu},
                {"unsampled", unsampled_},
                {"attributed", look_.ran ? "ticks" : "statistics"},
                {"work", std::move(found_)},
                {"workqueues", std::move(workqueues_)},
                {"stuck", std::move(stuck)},
                {"bypassed", std::move(bypassed)},
                {"isolated", {{"cpus", look_.isolated.list()}, {"work", std::move(isolated)}}},
                {"missing", look_.missing}};
    }

  private:
    void add_ticks() {
        std::map<int, std::uint64_t> sampled;  // ns in ticks, by pid
        for (const auto& ran : *look_.ran) sampled[ran.pid] += ran.cpu_ns;
        std::map<int, const KworkerUse*> uses;
        for (const auto& use : look_.kworkers) {
            uses[use.pid] = &use;
            if (!sampled.contains(use.pid)) unsampled_ += cpus_of(use.cpu_ns, look_.seconds);
        }
        for (const auto& ran : *look_.ran) {
            const auto row = rows_.find(ran.workqueue);
            if (row == rows_.end()) continue;  // the workqueue is gone
            const auto at = uses.find(ran.pid);
            KworkerShare share{ran.kworker, cpus_of(ran.cpu_ns, look_.seconds), {}};
            if (at != uses.end()) {
                const double part = static_cast<double>(ran.cpu_ns) / static_cast<double>(sampled[ran.pid]);
                share = {at->second->name, part * cpus_of(at->second->cpu_ns, look_.seconds),
                         at->second->cpus};
            }
            BusyWork& work = work_[{row->second->id, ran.function}];
            work.cpu += share.cpu;
            work.longest_ns = std::max(work.longest_ns.value_or(0), static_cast<double>(ran.longest_ns));
            work.kworkers.push_back(std::move(share));
        }
    }

    void add_statistics() {
        std::map<unsigned, double> busy;  // workers, by the id of the workqueue
        for (const auto& row : look_.work.functions) busy[row.id] += row.busy;
        // If the kernel counted more CPU time than the functions took, items that still run used the rest.
        for (const auto& row : look_.work.functions) {
            const double all = ids_.at(row.id)->cpu.value_or(0);
            work_[{row.id, row.function}].cpu +=
                busy[row.id] > all ? all * row.busy / busy[row.id] : row.busy;
        }
        for (const auto& [id, row] : ids_)
            if (const double rest = row->cpu.value_or(0) - busy[id]; rest > 0) work_[{id, ""}].cpu += rest;
    }

    // Adds what the monitor measured of each function. Work in soft interrupts is known from the monitor
    // only.
    void add_functions() {
        for (const auto& row : look_.work.functions) {
            const bool bh = ids_.at(row.id)->now.bh;
            if (!bh && !work_.contains({row.id, row.function})) continue;
            BusyWork& work = work_[{row.id, row.function}];
            if (bh) work.cpu = row.busy;
            work.measured = &row;
        }
    }

    // The most costly work first; workqueues in the order of their work, then those with events.
    void collect() {
        std::vector<std::pair<const std::pair<unsigned, std::string>*, BusyWork*>> sorted;
        for (auto& [key, work] : work_)
            if (work.cpu > 0) sorted.emplace_back(&key, &work);
        std::ranges::stable_sort(sorted, std::ranges::greater{},
                                 [](const auto& one) { return one.second->cpu; });
        std::map<unsigned, std::size_t> place;  // of a workqueue, by its id
        for (const auto& [key, work] : sorted) {
            const auto [at, is_new] = place.try_emplace(key->first, workqueues_.size());
            if (is_new) workqueues_.push_back(describe(*ids_.at(key->first)));
            Json& wq = workqueues_[at->second];
            wq["cpu"] = wq["cpu"].get<double>() + work->cpu;
            add_work(key->second, *work, wq);
        }
        for (const auto& [id, row] : ids_) {
            Json wq = place.contains(id) ? Json() : describe(*row);
            for (const char* event : {"cpu_hogs", "mayday", "rescued", "stalled"})
                if (wq.is_object() && wq[event].is_number() && wq[event] != 0)
                    workqueues_.push_back(std::exchange(wq, {}));
        }
    }

    void add_work(const std::string& function, BusyWork& work, const Json& wq) {
        std::ranges::stable_sort(work.kworkers, std::ranges::greater{}, &KworkerShare::cpu);
        Json kworkers = Json::array();
        for (const auto& one : work.kworkers)
            kworkers.push_back(
                {{"name", one.name}, {"cpu", one.cpu}, {"allowed", word_or_null(one.cpus.list())}});
        const auto* measured = work.measured;
        found_.push_back({{"cpu", work.cpu},
                          {"function", word_or_null(function)},
                          {"workqueue", wq["name"]},
                          {"id", wq["id"]},
                          {"kind", wq["kind"]},
                          {"kworkers", std::move(kworkers)},
                          {"per_second", measured != nullptr ? Json(measured->per_second) : Json()},
                          {"mean_ns", measured != nullptr ? Json(measured->mean) : Json()},
                          {"longest_ns", or_null(work.longest_ns)}});
    }

    [[nodiscard]] Json describe(const WorkqueueRow& row) const {
        const KernelWorkqueue &before = row.before, &now = row.now;
        const DumpedWorkqueue* dumped =
            now.unbound && look_.dump ? find_dumped(*look_.dump, now.name) : nullptr;
        // No scope makes other work faster.
        const bool scoped = dumped != nullptr && dumped->kind == "unbound" && dumped->max_active > 1;
        // Counted by the kernel during the look; null if it cannot happen on this workqueue, or if its pools
        // were replaced.
        const auto since = [&](bool applies, std::uint64_t KernelWorkqueue::*count) -> Json {
            if (row.reset || !applies || now.*count < before.*count) return nullptr;
            return now.*count - before.*count;
        };
        // Items in flight, if there were some at the start, and none began or ended since.
        const bool stalled =
            before.in_flight > 0 && now.started == before.started && now.completed == before.completed;
        Json out{{"name", now.name},
                 {"id", row.id},
                 {"kind", now.bh              ? "bh"
                          : dumped != nullptr ? dumped->kind
                          : now.unbound       ? "unbound"
                                              : "per-cpu"},
                 {"cpu", 0.0},
                 {"max_active", dumped != nullptr ? Json(dumped->max_active) : Json()},
                 {"scope", nullptr},
                 {"finer", Json::array()},
                 {"coarser", Json::array()},
                 {"target", scoped && now.in_sysfs          ? Json(now.name)
                            : scoped && now.follows_default ? Json(kDefaultTarget)
                                                            : Json()},
                 {"pool_cpus", nullptr},
                 {"pool_shared", nullptr},
                 {"lock_share", nullptr},
                 {"lock_ns", nullptr},
                 {"lock_cpu", nullptr},
                 {"contention_ns", nullptr},
                 {"contention_share", nullptr},
                 {"enqueue_ns", nullptr},
                 {"items", row.reset ? Json() : Json(row.items)},
                 {"cpu_hogs", since(now.managed, &KernelWorkqueue::cpu_intensive)},
                 {"cm_wakeups", since(now.managed, &KernelWorkqueue::cm_wakeup)},
                 {"repatriated", since(now.unbound, &KernelWorkqueue::repatriated)},
                 {"mayday", since(now.mem_reclaim, &KernelWorkqueue::mayday)},
                 {"rescued", since(now.mem_reclaim, &KernelWorkqueue::rescued)},
                 {"stalled", row.reset ? Json() : Json(stalled ? now.in_flight : 0)}};
        add_lock(out, look_.work, row);
        if (row.q50)
            out["enqueue_ns"] = {{"p50", *row.q50}, {"p90", *row.q90}, {"p95", *row.q95}, {"p99", *row.q99}};
        if (dumped == nullptr) return out;
        add_scopes(out, *look_.dump, *dumped, look_.online);
        add_pools(out, *look_.dump, *dumped, look_.online);
        return out;
    }

    const DiagnoseLook& look_;
    std::map<std::uint64_t, const WorkqueueRow*> rows_;  // by address
    std::map<unsigned, const WorkqueueRow*> ids_;
    std::map<std::pair<unsigned, std::string>, BusyWork> work_;  // by id of the workqueue, and function
    double unsampled_ = 0;
    Json found_ = Json::array(), workqueues_ = Json::array();
};

}  // namespace

nlohmann::ordered_json diagnose(const DiagnoseLook& look) {
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
        if (same || readings_ > 1) seen.use.cpu_ns += now.cpu_ns - (same ? seen.last.cpu_ns : 0);
        seen.use.pid = now.pid;
        seen.use.name = now.name;
        seen.use.work = now.work;
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
