// SPDX-License-Identifier: LGPL-2.1-or-later
// report_tree DIR [KIND]: makes a file tree for a report, with trials that the daemon's judge judged and its
// stores wrote.
//
// hostile, the default: two sockets with offline and isolated CPUs, and a workqueue whose name a page must
// escape. plain: one socket of 24 cores and a few disks. large: 384 CPUs and many disks. In the last two the
// daemon's own code wrote the scopes that the verdicts let it keep.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "ctl/topology_source.h"
#include "evidence/verdicts.h"
#include "fake_machine.h"
#include "machine/kernel_info.h"
#include "noise.h"
#include "policy/load_policy.h"
#include "targets/engine.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

const std::string kNasty = "<img src=x onerror=a>&\"'\x1b";

struct Load {
    std::string target;
    std::string candidate;
    double factor = 1;  // the candidate's cost relative to the baseline's
    double deviation = .03;
    JudgeSettings settings = {};
    unsigned most = kMaxPairs;  // pairs, then the trial is cut off
};

struct Kind {
    std::vector<test::Entry> entries;  // all but /var
    std::vector<Load> loads;
    bool apply = false;  // put the scopes that the verdicts let the daemon keep in force
};

void run_trial(VerdictStore& store, Random& random, const LedgerKey& key, const Load& load,
               std::int64_t time) {
    VerdictRecord record;
    record.key = key;
    record.target = load.target;
    record.time = time;
    record.comparison =
        1 + static_cast<unsigned>(std::ranges::count(store.records(), key, &VerdictRecord::key));
    record.settings = load.settings;
    record.judged = false;
    Comparison comparison(
        std::vector<ComparedCounter>{{.name = "latency", .tolerance = load.settings.tolerance}});
    Noise noise = autoregressive(load.deviation, 0.5);
    Decision at;
    for (unsigned i = 0; i < load.most && !record.judged; i++) {
        double first = 48'000 * std::exp(noise(random));
        double second = 48'000 * std::exp(noise(random));
        if (random.coin()) std::swap(first, second);
        const PairValues pair{first, second * load.factor};
        comparison.add({pair});
        at = comparison.decide({load.settings.alpha, 1, true});
        record.judged = at.judgement != Judgement::undecided || at.pairs >= load.settings.max_pairs;
    }
    record.outcome = at.judgement;
    record.reason = !record.judged                         ? "the workqueue vanished"
                    : at.judgement == Judgement::undecided ? kMaxPairsReason
                                                           : "";
    record.standing = {at.counter, static_cast<unsigned>(at.pairs), at.log_worse, at.log_better,
                       comparison.effect(at.column)};
    record.differences = differences_of(comparison.columns());
    if (!test::keep(store, record)) throw std::runtime_error("not written");
}

const JudgeSettings kFirst{.alpha = 0.025};
const JudgeSettings kTolerant{.alpha = 0.025, .tolerance = 0.02};

// A machine with these workqueues, and a kernel 6.12.
Kind with(const test::CpuTree& cpus, const std::string& hostname, std::vector<test::Entry> workqueues,
          const std::string& mask) {
    using test::File;
    Kind out{{test::cpu_tree(cpus), File("proc/sys/kernel/hostname", hostname + "\n"),
              File("proc/sys/kernel/osrelease", "6.12.107\n")},
             {},
             false};
    for (const auto& entry : test::kernel_tree(std::move(workqueues), "cache", "", mask))
        out.entries.push_back(entry);
    return out;
}

Kind hostile() {
    using test::workqueue;
    const std::string mask = "ffff,ffffffff";
    const test::WorkqueueFiles unbound{.cpumask = mask};
    Kind out =
        with({.sockets = 2,
              .cores = 12,
              .threads = 2,
              .llcs = 2,
              .offline = "13,15,17,19,21,23,37,39,41,43,45,47",
              .isolated = "10-11,34"},
             "storage-17.example",
             {workqueue("kcryptd-254:0-1", unbound), workqueue("nvme-wq", {.scope = "smt", .cpumask = mask}),
              workqueue("writeback", unbound), workqueue("scsi_tmf_0", {.cpumask = mask, .max_active = "1"}),
              workqueue(kNasty, unbound)},
             mask);
    out.entries.push_back(test::File("sys/devices/system/cpu/nohz_full", "9-11\n"));
    out.loads = {
        {kNasty, "smt", 1, .03, kFirst, 1},
        {"writeback", "smt", 1, .03, kFirst},
        {"kcryptd-254:0-1", "system", 1.06, .03, kTolerant},
        {"kcryptd-254:0-1", "smt", 0.94, .03, kFirst},
        {"kcryptd-254:0-1", "cpu", 3.6, .03, {.alpha = 0.001}, 30},
        {"nvme-wq", "numa", 1, .05, {.alpha = 1e-6, .max_pairs = 600}},
    };
    return out;
}

Kind plain() {
    using test::workqueue;
    const std::string mask = "ffff,ffffffff";
    const test::WorkqueueFiles unbound{.cpumask = mask};
    const test::WorkqueueFiles single{.cpumask = mask, .max_active = "1"};
    Kind out =
        with({.cores = 24, .threads = 2}, "storage-17.example",
             {workqueue("kcryptd-254:0-1", unbound), workqueue("kcryptd-254:1-2", unbound),
              workqueue("writeback", unbound), workqueue("raid5wq", unbound), workqueue("nvme-wq", unbound),
              workqueue("nvme-reset-wq", unbound), workqueue("nvme-delete-wq", unbound),
              workqueue("scsi_tmf_0", single), workqueue("scsi_tmf_1", single)},
             mask);
    out.loads = {{"writeback", "smt", 1, .03, kFirst},
                 {"raid5wq", "smt", 1.06, .03, kFirst},
                 {"kcryptd-254:0-1", "smt", 0.93, .03, kFirst}};
    out.apply = true;
    return out;
}

Kind large() {
    using test::workqueue;
    std::string mask = "ffffffff";
    for (int i = 1; i < 12; i++) mask += ",ffffffff";
    const test::WorkqueueFiles unbound{.cpumask = mask};
    std::vector<test::Entry> workqueues = {workqueue("writeback", unbound), workqueue("raid5wq", unbound)};
    for (int i = 0; i < 48; i++) {
        workqueues.push_back(workqueue(fmt::format("kcryptd-254:{}-{}", i, i + 1), unbound));
        workqueues.push_back(workqueue(fmt::format("scsi_tmf_{}", i), {.cpumask = mask, .max_active = "1"}));
    }
    Kind out = with({.sockets = 2, .cores = 96, .threads = 2, .llcs = 6, .nodes = 2}, "epyc-3.example",
                    std::move(workqueues), mask);
    for (int i = 0; i < 24; i++)
        out.loads.push_back(
            {fmt::format("kcryptd-254:{}-{}", i, i + 1), "smt", i < 4 ? 1.07 : 0.93, .03, kFirst});
    out.loads.push_back({"writeback", "smt", 1, .03, kFirst});
    out.apply = true;
    return out;
}

// The daemon's state machine on a tree.
class TreeEngine {
  public:
    explicit TreeEngine(const Paths& paths)
        : files_(paths),
          baselines_(paths.owned()),
          verdicts_(paths.verdicts()),
          engine_({files_, baselines_, quiet_, [paths] { return read_topology("live", paths.root); },
                   [](const auto&) { return false; }, verdicts_,
                   [] { return static_cast<std::int64_t>(::time(nullptr)); }},
                  probe_kernel(paths)) {
        auto policy = load_installed_policy(paths.root, {}, [] { return HostFacts{}; });
        if (!policy) throw std::runtime_error(policy.error().front().text());
        engine_.set_policy(std::move(*policy));
        engine_.look();
    }

    VerdictStore& verdicts() { return verdicts_; }
    void apply() { engine_.reconcile(); }
    [[nodiscard]] LedgerKey key_for(const Load& load) const {
        const auto target = engine_.targets().find(load.target);
        const auto candidate = arm_named(load.candidate);
        if (target == engine_.targets().end() || !candidate) throw std::runtime_error(load.target);
        return engine_.keys().ledger_key(target->second.now, {*arm_named("cache"), *candidate}, false);
    }

  private:
    struct : Log {
        void write(const LogLine& /*line*/) override {}
    } quiet_;
    WorkqueueFs files_;
    OwnedStore baselines_;
    VerdictStore verdicts_;
    Engine engine_;
};

void make(const std::string& folder, const std::string& name) {
    const Kind kind = name == "plain" ? plain() : name == "large" ? large() : hostile();
    {
        const test::TempTree tree{kind.entries};
        std::filesystem::copy(
            tree.root(), folder,
            std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    }
    const Paths paths{folder};
    TreeEngine engine(paths);
    Random random(7);
    // A day ago: the verdicts are still valid.
    const std::int64_t start = ::time(nullptr) - 86'400;
    for (std::size_t i = 0; i < kind.loads.size(); i++)
        run_trial(engine.verdicts(), random, engine.key_for(kind.loads[i]), kind.loads[i],
                  start + 2400 * static_cast<std::int64_t>(i));
    if (kind.apply) engine.apply();
}

}  // namespace
}  // namespace wq

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) return 2;
    try {
        wq::make(argv[1], argc == 3 ? argv[2] : "hostile");
    } catch (const std::exception& error) {
        fmt::print(stderr, "report_tree: {}\n", error.what());
        return 1;
    }
    return 0;
}
