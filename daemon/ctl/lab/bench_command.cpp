// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include "ctl/lab/aio_load.h"
#include "ctl/lab/bench_left.h"
#include "ctl/lab/bench_page.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/kernel_devices.h"
#include "ctl/lab/runner.h"
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

using bench::BenchResult;

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
        auto result = bench::parse_result(*text);
        if (!result) return complain(result.error().in(file).text);
        results.emplace_back(file, std::move(*result));
    }
    if (!options.json) {
        fmt::print("{}", bench::compare_table(results, terminal_columns(), wants_colour()));
        return kOk;
    }
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& [file, result] : results) all.push_back(bench::to_json(result));
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

Status check_memory(const Paths& paths, const bench::Settings& settings) {
    const std::uint64_t needed = bench::needed_mib(settings);
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

bench::Host host_of(const Paths& paths, const Topology& topology, const KernelInfo& kernel) {
    const HostFacts facts = read_host_facts(paths, topology);
    bench::Host host{.cpu = facts.cpu_models.empty() ? "" : facts.cpu_models.front(),
                     .kernel = kernel.release,
                     .cpus = static_cast<unsigned>(topology.online.count()),
                     .cores = static_cast<unsigned>(topology.cores.size()),
                     .cache_shard_size = kernel.cache_shard_size,
                     .is_virtual = facts.is_virtual};
    const CoreIndex index(topology);
    for (const Llc& llc : llcs_in(kernel, topology))
        host.llc_cores.push_back(static_cast<unsigned>(index.cores_in(llc.cpus)));
    return host;
}

std::string machine_of(const Paths& paths, const bench::Machine& machine) {
    return machine_html({machine.topology, machine.kernel, effective_shard_size(machine.kernel, {}),
                         read_isolation(paths), read_core_kinds(paths, machine.topology)});
}

// Writes the files first, because they remain if the terminal of stdout is gone.
int show(const BenchOptions& options, const Paths& paths, const bench::Machine& machine,
         const BenchResult& result) {
    int code = kOk;
    const auto write = [&](const std::string& path, const std::string& text) {
        if (path.empty()) return;
        if (const auto written = write_output(path, text); !written) code = complain(written.error().text);
    };
    if (result.rounds > 0) {
        write(options.save, json_text(bench::to_json(result), 1) + "\n");
        write(options.page,
              bench::bench_page(result, options.page.empty() ? "" : machine_of(paths, machine)));
    }
    if (options.json)
        fmt::print("{}\n", json_text(bench::to_json(result)));
    else if (result.rounds > 0)
        fmt::print("{}", bench::bench_table(result, terminal_columns(), wants_colour()));
    return code;
}

Status put_back_earlier(const bench::Tools& tools) {
    Complaints log(LOG_INFO);
    if (bench::remove_left(tools.paths, tools.devices, log)) return {};
    return fail("settings or devices of an earlier bench, ab or comparison could not be restored or removed");
}

// Runs the benchmark and shows the result. The caller holds the lock.
int run(const BenchOptions& options, const bench::Tools& tools, const bench::Machine& machine) {
    BenchResult result;
    result.time = ::time(nullptr);
    result.version = version();
    result.host = host_of(tools.paths, machine.topology, machine.kernel);
    result.settings = options.settings;
    const auto cpus = static_cast<unsigned>(machine.topology.online.count());
    result.settings.writers = options.writers.value_or(std::clamp(cpus / kWriterShare, 1U, kMostWriters));
    if (const auto room = check_memory(tools.paths, result.settings); !room)
        return complain(room.error().text);
    const auto done = bench::run_bench(tools, machine, result);
    if (!done) complain(done.error().text);
    const int shown = show(options, tools.paths, machine, result);
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
    const ab::Interrupts interrupts;
    const ab::Guardian* guardian = nullptr;
    const auto run_it = [&](const std::vector<std::string>& words) -> Status {
        const auto ran = ab::run_command(words, ab::Output::drop, interrupts.none(), guardian);
        if (!ran) return tl::unexpected(ran.error());
        if (ran->failure.empty()) return {};
        return fail(fmt::format("{}: {}", fmt::join(words, " "), ran->failure));
    };
    bench::KernelDevices devices("", run_it);
    bench::AioLoad load(interrupts);
    const auto counters = make_bpf_counters();
    return bench(options, {{}, devices, load, *counters, [&](const ab::Guardian* g) { guardian = g; }});
}

}  // namespace

int bench(const BenchOptions& options, const bench::Tools& tools) {
    if (!options.compare.empty()) return compare(options);
    if (tools.paths.root.empty() && ::geteuid() != 0) return complain("bench makes devices: only root can");
    if (const auto can = check_outputs(options); !can) return complain(can.error().text);
    const auto topology = read_topology("live", tools.paths.root);
    if (!topology) return complain(topology.error().text);
    const auto lock = ab::lock_out_daemon(tools.paths);
    if (!lock) return complain(lock.error().text);
    if (const auto earlier = put_back_earlier(tools); !earlier) return complain(earlier.error().text);
    if (options.restore) return kOk;
    Options here;
    here.root = tools.paths.root;
    const KernelInfo kernel = kernel_of(here);
    if (const std::string lacks = lacks_scopes(kernel); !lacks.empty()) return complain(lacks);
    return run(options, tools, {*topology, kernel});
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
