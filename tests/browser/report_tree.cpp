// SPDX-License-Identifier: LGPL-2.1-or-later
// report_tree DIR: makes a file tree for a report: two sockets with offline and isolated CPUs, many
// workqueues, one of which has a name that a page must escape, and verdicts with their pairs.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "evidence/verdicts.h"
#include "fake_machine.h"
#include "machine/paths.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

const std::string kNasty = "<img src=x onerror=a>&\"'\x1b";

void add_verdicts(const std::string& folder) {
    VerdictStore store(Paths{folder}.verdicts());
    std::mt19937 random(7);
    std::normal_distribution<double> noise(-0.06, 0.03);
    for (int i = 0; i < 20; i++) {
        VerdictRecord record;
        record.key = test::key_of("kcryptd-#:#-#");
        record.target = i == 19 ? kNasty : fmt::format("kcryptd-254:{}-{}", i, i + 1);
        record.time = 1'700'000'000 + 2400 * i;
        record.outcome = i % 3 == 0 ? Judgement::improved : Judgement::undecided;
        record.standing = {"latency", 64, 0, 9, {-5.8, Effect::Interval{-6.6, -5}}};
        Differences differences{"latency"};
        for (int pair = 0; pair < 64; pair++) differences.last.push_back(i == 7 ? 1e3 : noise(random));
        record.differences = {differences};
        if (!test::keep(store, record)) throw std::runtime_error("not written");
    }
}

void make(const std::string& folder) {
    const std::string mask = "ffff,ffffffff";
    std::vector<test::Entry> workqueues = {
        test::workqueue(kNasty, {.cpumask = mask}),
        test::workqueue("nvme-wq", {.scope = "smt", .cpumask = mask}),
        test::workqueue("scsi_tmf_0", {.cpumask = mask, .max_active = "1"})};
    for (int i = 0; i < 40; i++)
        workqueues.push_back(test::workqueue(fmt::format("kcryptd-254:{}-{}", i, i + 1), {.cpumask = mask}));
    std::vector<test::Entry> entries = test::kernel_tree(std::move(workqueues), "cache", "", mask);
    entries.push_back(test::cpu_tree({.sockets = 2,
                                      .cores = 12,
                                      .threads = 2,
                                      .llcs = 2,
                                      .offline = "13,15,17,19,21,23,37,39,41,43,45,47",
                                      .isolated = "10-11,34"}));
    entries.push_back(test::File("proc/sys/kernel/hostname", "storage-17.example\n"));
    entries.push_back(test::File("sys/devices/system/cpu/nohz_full", "9-11\n"));
    const test::TempTree tree{entries};
    std::filesystem::copy(
        tree.root(), folder,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    add_verdicts(folder);
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
