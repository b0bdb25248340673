// SPDX-License-Identifier: LGPL-2.1-or-later

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "ctl/command.h"
#include "ctl/lab/bench.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "ctl/topology_source.h"
#include "evidence/json_values.h"
#include "machine/host_facts.h"
#include "machine/kernel_info.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

using lab::BenchResult;
using lab::BenchTools;

constexpr double kLeastSeconds = 0.1;
constexpr double kMostSeconds = 60;
constexpr unsigned kMostRounds = 1000;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kCpusPerThread = 4;

BenchResult host_of(const Paths& paths, const lab::ScopesOf& machine) {
    const Topology& topology = machine.topology;
    const HostFacts facts = read_host_facts(paths, topology);
    const CoreIndex index(topology);
    auto llc_cores = BenchResult::array();
    for (const Llc& llc : llcs_in(machine.kernel, topology)) llc_cores.push_back(index.cores_in(llc.cpus));
    return {{"cpu", facts.cpu_models.empty() ? BenchResult() : BenchResult(facts.cpu_models.front())},
            {"cpus", topology.online.count()},
            {"cores", topology.cores.size()},
            {"llc_cores", llc_cores},
            {"virtual", or_null(facts.is_virtual)},
            {"kernel", machine.kernel.release},
            {"cache_shard_size", or_null(machine.kernel.cache_shard_size)}};
}

// Runs the benchmark and shows the result. The caller holds the lock.
int run(const BenchOptions& options, const BenchTools& tools, const lab::ScopesOf& machine) {
    const std::int64_t begun = ::time(nullptr);
    const auto host = host_of(tools.lab.paths, machine);
    lab::BenchSettings settings = options.settings;
    const auto cpus = static_cast<unsigned>(machine.topology.online.count());
    settings.threads = options.threads.value_or(std::clamp(cpus / kCpusPerThread, 1U, kMostThreads));
    const auto measured = lab::run_bench(tools, machine, settings);
    const auto result = lab::bench_result(begun, host, settings, measured);
    if (options.json)
        fmt::print("{}\n", json_text(result));
    else if (measured.rounds > 0)
        fmt::print("{}", lab::bench_table(result, terminal_columns(), wants_colour()));
    return measured.stopped.empty() ? kOk : complain(measured.stopped);
}

}  // namespace

int bench(const BenchOptions& options, const BenchTools& tools) {
    const std::string& root = tools.lab.paths.root;
    if (root.empty() && ::geteuid() != 0) return complain("bench makes devices: only root can");
    if (const auto can = options.restore ? Status{} : tools.fio.check(); !can)
        return complain(can.error().text);
    const auto topology = read_topology("live", root);
    if (!topology) return complain(topology.error().text);
    return lab::in_lab(tools.lab, options.restore, [&] {
        Options here;
        here.root = root;
        const KernelInfo kernel = kernel_of(here);
        if (const std::string lacks = lacks_scopes(kernel); !lacks.empty()) return complain(lacks);
        return run(options, tools, {*topology, kernel});
    });
}

CommandRun set_up_bench(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<BenchOptions>();
    BenchOptions& o = *options;
    take_seconds(command.add_option("--seconds", o.settings.seconds, "Measured time of each run; default 1"),
                 kLeastSeconds, kMostSeconds);
    take_number(command.add_option("--rounds", o.settings.rounds, "How often each scope runs; default 16"),
                1U, kMostRounds);
    take_number(command.add_option("--threads", o.threads, "Threads of fio; default one per four CPUs"), 1U,
                kMostThreads);
    command
        .add_option_function<std::string>(
            "--load",
            [&o](const std::string& word) {
                if (word != "both") o.settings.loads = {word};
            },
            "What fio does; default both, each in its own runs")
        ->type_name(word::kLoad)
        ->check(CLI::IsMember({"write", "read", "both"}).description(""));
    command.add_flag("--restore", o.restore,
                     "Restore scopes and remove devices that an earlier run left, and do nothing else");
    command.add_flag("--json", o.json, kJsonHelp);
    return [options, &command, &invocation] {
        if (options->restore) only_option(command, "--restore");
        if (!invocation.root.empty())
            throw CLI::ValidationError("bench makes devices on the running kernel: no --root");
        lab::Processes processes;
        lab::Devices devices("", lab::runs(processes));
        lab::Fio fio(processes);
        const auto counters = make_bpf_counters();
        return bench(*options, {{{}, processes, devices}, fio, *counters});
    };
}

}  // namespace wq::ctl
