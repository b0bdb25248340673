// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "ctl/lab/bench.h"
#include "machine/workqueue_fs.h"

namespace wq::lab {
namespace {

constexpr std::uint64_t kDeviceBytes = 128U << 20U;
constexpr double kSettle = 0.25;  // fraction of a run's seconds, before the measurement
constexpr double kMega = 1e6;

// Checks the device number, because a path outside devtmpfs can name another device.
Status check_number(const CryptDevice& device) {
    struct stat about {};
    if (::stat(device.path.c_str(), &about) != 0) return fail_errno(device.path, errno);
    const std::string number = fmt::format("{}:{}", major(about.st_rdev), minor(about.st_rdev));
    if (device.number.empty() || device.number == number) return {};
    return fail(fmt::format("{}: is not the device {}", device.path, device.number), ENODEV);
}

// The figures in OUTPUT of fio: messages, if any, then one JSON document.
Result<Figures> figures_in(const std::string& output) {
    try {
        const auto document = nlohmann::json::parse(output.substr(std::min(output.find('{'), output.size())));
        const auto& write = document.at("jobs").at(0).at("write");
        const double mb_per_s = write.at("bw_bytes").get<double>() / kMega;
        if (mb_per_s <= 0) return fail("fio: no write ended in time; give it more --seconds");
        const auto& times = write.at("clat_ns").at("percentile");
        const auto time = [&](const char* percentile) { return times.at(percentile).get<double>(); };
        return Figures{.value = mb_per_s,
                       .mb_per_s = mb_per_s,
                       .p50 = time("50.000000"),
                       .p90 = time("90.000000"),
                       .p99 = time("99.000000"),
                       .seconds = write.at("runtime").get<double>() / 1000};
    } catch (const nlohmann::json::exception& e) {
        return fail(fmt::format("fio: its output: {}", json_error_text(e.what())));
    }
}

// Saves the names to disk before it makes the devices.
Result<CryptDevice> make_device(const Lab& lab) {
    Devices& devices = lab.devices;
    const LeftDevice left{new_device_name(), !devices.has_driver()};
    if (auto saved = lab.left().put(left); !saved) return tl::unexpected(saved.error());
    if (auto loaded = devices.load_driver(); !loaded) return tl::unexpected(loaded.error());
    const auto ram = devices.make_ram(left.name, kDeviceBytes);
    if (!ram) return tl::unexpected(ram.error());
    return devices.make_crypt(left.name, *ram, kDeviceBytes);
}

Result<Workqueue> workqueue_of(const Paths& paths, const CryptDevice& device) {
    const WorkqueueFs files(paths);
    const auto names = files.names();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names)
        if (name.starts_with("kcryptd-" + device.number + "-")) return files.read(name);
    return fail("this kernel does not show the workqueue of dm-crypt in sysfs: 6.10 or later does");
}

// The kernel's counts of the WORKQUEUE. After the first error, which MISSING tells, does not try again.
std::optional<WorkCounters::Traffic> count(WorkCounters& counters, const std::string& workqueue,
                                           std::string& missing) {
    if (!missing.empty()) return {};
    const auto traffic = counters.traffic();
    if (!traffic) {
        missing = "items/s and CPU per item: " + traffic.error().text;
        return {};
    }
    const auto found = traffic->find(workqueue);
    return found != traffic->end() ? std::optional(found->second) : std::nullopt;
}

Status measure_scopes(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& s,
                      Measured& out) {
    const Lab& lab = tools.lab;
    const auto device = make_device(lab);
    if (!device) return tl::unexpected(device.error());
    auto workqueue = workqueue_of(lab.paths, *device);
    if (!workqueue) return tl::unexpected(workqueue.error());
    const auto subject = scope_arms(lab.paths, machine, std::move(*workqueue), {}, true);
    if (!subject) return tl::unexpected(subject.error());
    const auto counted = [&] { return count(tools.counters, subject->name, out.missing); };
    // Each run follows a write, which makes new pools, whose counts begin at 0. The replaced ones still count
    // for a moment, so no count is taken before the run.
    const auto measure = [&](std::size_t) -> Result<Figures> {
        auto figures = tools.load.run(*device, s);
        if (!figures) return figures;
        const auto after = counted();
        figures->kworkers = count_kworkers(lab.paths);
        if (!after || after->completed == 0) return figures;
        const auto items = static_cast<double>(after->completed);
        figures->items_per_s = items / figures->seconds;
        if (after->cpu_ns > 0) figures->cpu = static_cast<double>(after->cpu_ns) / items;
        return figures;
    };
    (void)counted();  // loads the BPF programs now, not during a run
    JudgeSettings settings;
    // The result names the best of all candidates, so alpha applies to all of them together, in each
    // direction.
    settings.alpha /= static_cast<double>(subject->rows.size() - 1);
    settings.max_pairs = s.rounds;
    Rounds rounds(subject->rows, settings, {"MB/s", true}, true);
    // One run first warms up caches and pools.
    auto done = compare(lab, *subject, rounds, 1, measure);
    out.rounds = rounds.count();
    out.rows = rounds.rows();
    return done;
}

}  // namespace

Status Load::check() const {
    const auto ran = processes_.must_run({program_, "--version"}, program_ + " --version");
    if (ran || ran.error().code != ENOENT) return ran;
    return fail("fio, which writes to the device, is not installed: apt install fio", ENOENT);
}

// With --thread it is one process, so that killing it leaves no writer. fio must not make a file where the
// device is missing.
Result<Figures> Load::run(const CryptDevice& device, const BenchSettings& settings) {
    if (auto ours = check_number(device); !ours) return tl::unexpected(ours.error());
    const double settle = kSettle * settings.seconds;
    const auto ran = processes_.run({program_,
                                     "--name=bench",
                                     "--filename=" + device.path,
                                     "--allow_file_create=0",
                                     "--thread",
                                     "--rw=randwrite",
                                     fmt::format("--bs={}", kBlock),
                                     "--direct=1",
                                     "--ioengine=libaio",
                                     fmt::format("--numjobs={}", settings.writers),
                                     fmt::format("--iodepth={}", settings.depth),
                                     "--group_reporting",
                                     "--norandommap",
                                     "--randrepeat=0",
                                     "--scramble_buffers=0",
                                     "--time_based",
                                     fmt::format("--ramp_time={:.0f}ms", 1000 * settle),
                                     fmt::format("--runtime={:.0f}ms", 1000 * settings.seconds),
                                     "--percentile_list=50:90:99",
                                     "--disk_util=0",
                                     "--eta=never",
                                     "--output-format=json"},
                                    Output::capture_all);
    if (!ran) return tl::unexpected(ran.error());
    if (!ran->failure.empty())
        return fail(fmt::format("fio: {}{}", ran->failure,
                                end_of_output(ran->output.substr(0, ran->output.find("{\n")))));
    auto figures = figures_in(ran->output);
    if (!figures) return figures;
    figures->seconds += settle;
    return figures;
}

Measured run_bench(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& settings) {
    Measured out;
    const auto done = run_guarded(tools.lab, "bench", "a device or its setting is left",
                                  [&] { return measure_scopes(tools, machine, settings, out); });
    if (!done) out.stopped = done.error().text;
    return out;
}

}  // namespace wq::lab
