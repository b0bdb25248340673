// SPDX-License-Identifier: LGPL-2.1-or-later
// report_tree DIR: a tree to make a report of. A machine of two sockets with CPUs that are offline and set
// apart, workqueues with names that a page must not believe, and trials that the judge judged, kept by the
// stores.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "fake_machine.h"
#include "noise.h"
#include "temp_tree.h"
#include "tuner/readings.h"

namespace wq {
namespace {

const std::string kNasty = "<img src=x onerror=a>&\"'\x1b";

struct Load {
    std::string target;
    std::string candidate;
    double factor = 1;  // what the candidate does to the cost
    double deviation = .03;
    JudgeSettings settings = {};
    unsigned most = kMaxPairs;  // pairs, before it is cut off
};

void run_trial(const Paths& paths, VerdictStore& store, Random& random, const Load& load, std::int64_t time) {
    VerdictRecord record;
    record.key = {"6.12.107", "48 CPUs", class_of(load.target), "cache", load.candidate, "latency"};
    record.target = load.target;
    record.time = time;
    record.trial = store.begun(record.key) + 1;
    record.settings = load.settings;
    record.dropped = load.most % 3;
    TrialReadings readings{{{"latency", false}}, {}};
    Trial trial(load.settings, readings.counters);
    Noise noise = autoregressive(load.deviation, 0.5);
    std::optional<TrialVerdict> verdict;
    for (unsigned i = 0; i < load.most && !verdict; i++) {
        double first = 48'000 * std::exp(noise(random));
        double second = 48'000 * std::exp(noise(random));
        if (random.coin()) std::swap(first, second);
        const WindowPair pair{{{first, second * load.factor}}, {}};
        readings.add(pair);
        verdict = trial.add(pair);
    }
    record.judged = verdict.has_value();
    const TrialVerdict end = trial.end("the workqueue vanished");
    record.outcome = end.outcome;
    record.reason = end.reason;
    record.standing = end.standing;
    if (!store.begin(record.key).add(record).save() || !keep_readings(paths, record, readings))
        throw std::runtime_error("not written");
}

void make(const std::string& folder) {
    using test::File;
    using test::workqueue;
    const std::string mask = "ffff,ffffffff";
    const test::WorkqueueFiles unbound{.cpumask = mask};
    const test::WorkqueueFiles plain{.scope = "smt", .cpumask = mask};
    test::TempTree tree{test::cpu_tree({.sockets = 2,
                                        .cores = 12,
                                        .threads = 2,
                                        .llcs = 2,
                                        .offline = "13,15,17,19,21,23,37,39,41,43,45,47",
                                        .isolated = "10-11,34"}),
                        File("sys/devices/system/cpu/nohz_full", "9-11\n"),
                        File("proc/sys/kernel/hostname", "storage-17.example\n"),
                        File("proc/sys/kernel/osrelease", "6.12.107\n")};
    for (const auto& entry : test::kernel_tree(
             {workqueue("kcryptd-254:0-1", unbound), workqueue("nvme-wq", plain),
              workqueue("writeback", unbound), workqueue("scsi_tmf_0", {.cpumask = mask, .max_active = "1"}),
              workqueue(kNasty, unbound)},
             "cache", "", mask))
        tree.add(entry);
    const Paths paths{tree.root()};
    VerdictStore store(paths.verdicts());
    Random random(7);
    const JudgeSettings first{.alpha = 0.025};
    const JudgeSettings tolerant{.alpha = 0.025, .tolerance = 0.02};
    const std::int64_t start = 1'790'000'000;
    const std::vector<Load> loads = {
        {kNasty, "smt", 1, .03, first, 1},
        {"writeback", "smt", 1, .03, first},
        {"kcryptd-254:0-1", "system", 1.06, .03, tolerant},
        {"kcryptd-254:0-1", "smt", 0.94, .03, first},
        {"kcryptd-254:0-1", "cpu", 3.6, .03, {.alpha = 0.001}, 30},
        {"nvme-wq", "numa", 1, .05, {.alpha = 1e-6, .max_pairs = 600}},
    };
    for (std::size_t i = 0; i < loads.size(); i++)
        run_trial(paths, store, random, loads[i], start + 7200 * static_cast<std::int64_t>(i));
    std::filesystem::copy(
        tree.root(), folder,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
}

}  // namespace
}  // namespace wq

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    try {
        wq::make(argv[1]);
    } catch (const std::exception& error) {
        fmt::print(stderr, "report_tree: {}\n", error.what());
        return 1;
    }
    return 0;
}
