// SPDX-License-Identifier: LGPL-2.1-or-later

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <memory>

#include "base/file.h"
#include "base/version.h"
#include "bpf/work_counters.h"
#include "ctl/command.h"
#include "ctl/complaints.h"
#include "ctl/json_values.h"
#include "ctl/lab/bench.h"
#include "ctl/machine.h"
#include "ctl/output_file.h"
#include "ctl/render/terminal.h"
#include "ctl/report/report_sections.h"
#include "ctl/setting_option.h"
#include "machine/host_facts.h"
#include "machine/hwloc_topology.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "plan/pods.h"

namespace wq::ctl {
namespace {

using lab::BenchResult;
using lab::BenchTools;

constexpr double kLeastSeconds = 0.1;
constexpr double kMostSeconds = 60;
constexpr unsigned kMostRounds = 1000;
constexpr unsigned kMostWriters = 1024;
constexpr unsigned kWriterShare = 4;            // CPUs for each writer
constexpr std::size_t kMostSaved = 64U << 20U;  // bytes of a saved file

int compare(const BenchOptions& options) {
    std::vector<std::pair<std::string, BenchResult>> results;
    for (const std::string& file : options.compare) {
        const auto text = read_file(file, kMostSaved);
        if (!text) return complain(text.error().text);
        auto result = lab::parse_result(*text);
        if (!result) return complain(result.error().in(file).text);
        results.emplace_back(file, std::move(*result));
    }
    if (!options.json) {
        fmt::print("{}", lab::compare_table(results, terminal_columns(), wants_colour()));
        return kOk;
    }
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& [file, result] : results) all.push_back(lab::to_json(result));
    fmt::print("{}\n", json_text(all));
    return kOk;
}

// MiB that new programs can have without swapping; 0 if not known.
std::uint64_t available_mib(const Paths& paths) {
    constexpr std::string_view kKey = "MemAvailable:";
    const auto text = read_file(paths.proc() + "/meminfo");
    const auto at = text ? text->find(kKey) : std::string::npos;
    const auto digit = at == std::string::npos ? at : text->find_first_of("0123456789", at);
    if (digit == std::string::npos) return 0;
    std::uint64_t kib = 0;
    std::from_chars(text->data() + digit, text->data() + text->size(), kib);
    return kib / 1024;
}

Status check_memory(const Paths& paths, const lab::Settings& settings) {
    const std::uint64_t needed = lab::needed_mib(settings);
    const std::uint64_t available = available_mib(paths);
    if (available >= needed) return {};
    return fail(fmt::format("no room for the devices: {} MiB of memory are needed, {} are available", needed,
                            available),
                ENOMEM);
}

Status check_outputs(const BenchOptions& options) {
    if (!options.save.empty() && options.save == options.page)
        return fail(options.save + ": --save and --output name one file");
    for (const std::string& path : {options.save, options.page})
        if (!path.empty())
            if (auto can = check_output(path); !can) return can;
    return {};
}

lab::Host host_of(const Paths& paths, const Topology& topology, const KernelInfo& kernel) {
    const HostFacts facts = read_host_facts(paths, topology);
    lab::Host host{.kernel = kernel.release,
                   .cpus = static_cast<unsigned>(topology.online.count()),
                   .cores = static_cast<unsigned>(topology.cores.size()),
                   .cache_shard_size = kernel.cache_shard_size,
                   .is_virtual = facts.is_virtual};
    if (!facts.cpu_models.empty()) host.cpu = facts.cpu_models.front();
    const CoreIndex index(topology);
    for (const Llc& llc : llcs_in(kernel, topology))
        host.llc_cores.push_back(static_cast<unsigned>(index.cores_in(llc.cpus)));
    return host;
}

std::string machine_of(const Paths& paths, const lab::ScopesOf& machine) {
    return machine_html({machine.topology, machine.kernel, effective_shard_size(machine.kernel, {}),
                         read_isolation(paths), read_core_kinds(paths, machine.topology)});
}

// Writes the files first, because they remain if the terminal of stdout is gone.
int show(const BenchOptions& options, const Paths& paths, const lab::ScopesOf& machine,
         const BenchResult& result) {
    int code = kOk;
    const auto write = [&](const std::string& path, const std::string& text) {
        if (path.empty()) return;
        if (const auto written = write_output(path, text); !written) code = complain(written.error().text);
    };
    if (result.rounds > 0) {
        write(options.save, json_text(lab::to_json(result), 1) + "\n");
        write(options.page, lab::bench_page(result, options.page.empty() ? "" : machine_of(paths, machine)));
    }
    if (options.json)
        fmt::print("{}\n", json_text(lab::to_json(result)));
    else if (result.rounds > 0)
        fmt::print("{}", lab::bench_table(result, terminal_columns(), wants_colour()));
    return code;
}

// Runs the benchmark and shows the result. The caller holds the lock.
int run(const BenchOptions& options, const BenchTools& tools, const lab::ScopesOf& machine) {
    BenchResult result;
    result.time = ::time(nullptr);
    result.version = version();
    result.host = host_of(tools.lab.paths, machine.topology, machine.kernel);
    result.settings = options.settings;
    const auto cpus = static_cast<unsigned>(machine.topology.online.count());
    result.settings.writers = options.writers.value_or(std::clamp(cpus / kWriterShare, 1U, kMostWriters));
    if (const auto room = check_memory(tools.lab.paths, result.settings); !room)
        return complain(room.error().text);
    const auto done = lab::run_bench(tools, machine, result);
    if (!done) complain(done.error().text);
    const int shown = show(options, tools.lab.paths, machine, result);
    return done ? shown : kFailure;
}

void add_options(CLI::App& command, BenchOptions& o) {
    command.add_option("--seconds", o.settings.seconds, "Measured time of each run; default 2.5")
        ->type_name(word::kNumber)
        ->check(seconds_between(kLeastSeconds, kMostSeconds));
    take_number(command.add_option("--rounds", o.settings.rounds, "How often each scope runs; default 16"),
                1U, kMostRounds);
    take_number(command.add_option("--writers", o.writers, "Threads that write; default one per four CPUs"),
                1U, kMostWriters);
    auto* page = command.add_option("-o,--output", o.page, "Write the result as a page for a browser")
                     ->type_name(word::kFile)
                     ->check(not_empty);
    auto* save = command.add_option("--save", o.save, "Write the result for --compare")
                     ->type_name(word::kFile)
                     ->check(not_empty);
    auto* compare = command.add_option("--compare", o.compare, "One table of saved results; nothing is run")
                        ->type_name(word::kFile)
                        ->check(not_empty)
                        ->excludes(page)
                        ->excludes(save);
    auto* restore =
        command.add_flag("--restore", o.restore,
                         "Restore scopes and remove devices that an earlier run left, and do nothing else");
    restore->excludes(page)->excludes(save)->excludes(compare);
    auto* json = command.add_flag("--json", o.json, kJsonHelp);
    restore->excludes(json);
    for (const char* name : {"--seconds", "--rounds", "--writers"}) {
        compare->excludes(command.get_option(name));
        restore->excludes(command.get_option(name));
    }
}

// Runs bench() with this machine's devices and counters.
int bench_here(const BenchOptions& options) {
    lab::Processes processes;
    lab::KernelDevices devices("", lab::runs(processes));
    lab::FioLoad load(processes);
    const auto counters = make_bpf_counters();
    return bench(options, {{{}, processes, devices}, load, *counters});
}

}  // namespace

int bench(const BenchOptions& options, const BenchTools& tools) {
    if (!options.compare.empty()) return compare(options);
    const std::string& root = tools.lab.paths.root;
    if (root.empty() && ::geteuid() != 0) return complain("bench makes devices: only root can");
    if (const auto can = check_outputs(options); !can) return complain(can.error().text);
    if (const auto can = options.restore ? Status{} : tools.load.check(); !can)
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
    add_options(command, *options);
    return [options, &invocation] {
        if (!invocation.root.empty() && options->compare.empty())
            throw CLI::ValidationError("bench makes devices on the running kernel: no --root");
        return bench_here(*options);
    };
}

}  // namespace wq::ctl
