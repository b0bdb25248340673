// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/bench.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/rounds.h"
#include "ctl/render/progress.h"
#include "machine/workqueue_fs.h"

namespace wq::lab {
namespace {

constexpr std::uint64_t kReserve = 128U << 20U;  // bytes, for the devices and other memory needs
constexpr double kSettle = 0.25;                 // fraction of a run's seconds, before the measurement
constexpr double kMega = 1e6;

// Checks the device number, because a path outside devtmpfs can name another device.
Status check_number(const LoadJob& job) {
    struct stat about {};
    if (::stat(job.path.c_str(), &about) != 0) return fail_errno(job.path, errno);
    if (job.number.empty() || fmt::format("{}:{}", major(about.st_rdev), minor(about.st_rdev)) == job.number)
        return {};
    return fail(fmt::format("{}: is not the device {}", job.path, job.number), ENODEV);
}

// The figures in OUTPUT of fio: messages, if any, then one JSON document.
Result<LoadFigures> figures_in(const std::string& output, const LoadJob& job) {
    try {
        const auto document = nlohmann::json::parse(output.substr(std::min(output.find('{'), output.size())));
        const auto& write = document.at("jobs").at(0).at("write");
        const double rate = write.at("bw_bytes");
        if (rate <= 0) return fail(job.path + ": no write ended in time; give it more --seconds");
        const auto& times = write.at("clat_ns").at("percentile");
        return LoadFigures{job.settle + write.at("runtime").get<double>() / 1000, rate / kMega,
                           times.at("50.000000"), times.at("90.000000"), times.at("99.000000")};
    } catch (const nlohmann::json::exception& e) {
        return fail(fmt::format("fio: its output: {}", json_error_text(e.what())));
    }
}

class BenchRun {
  public:
    BenchRun(const BenchTools& tools, const ScopesOf& machine, BenchResult& result)
        : tools_(tools), lab_(tools.lab), machine_(machine), result_(result) {}

    Status go();

  private:
    Status make();
    Result<Workqueue> find_workqueue() const;
    Status choose_arms();
    Status compare();
    Result<Figures> measure();
    std::optional<WorkCounters::Traffic> count();

    const BenchTools& tools_;
    const Lab& lab_;
    const ScopesOf& machine_;
    BenchResult& result_;
    CryptDevice device_;
    std::string workqueue_;
    std::vector<Setting> settings_;  // of the arms, result_.rows
};

Status BenchRun::go() {
    return run_guarded(lab_, {"bench",
                              [&] {
                                  auto done = make();
                                  if (done) done = choose_arms();
                                  return done ? compare() : done;
                              },
                              "a device or its setting is left"});
}

// Saves the names to disk before it makes the devices.
Status BenchRun::make() {
    Devices& devices = lab_.devices;
    const LeftDevice left{new_device_name(), !devices.has_driver()};
    if (auto saved = lab_.left().put(left); !saved) return saved;
    if (auto loaded = devices.load_driver(); !loaded) return loaded;
    const auto ram = devices.make_ram(left.name, kDeviceBytes);
    if (!ram) return tl::unexpected(ram.error());
    auto crypt = devices.make_crypt(left.name, *ram, kDeviceBytes);
    if (!crypt) return tl::unexpected(crypt.error());
    device_ = std::move(*crypt);
    return {};
}

Result<Workqueue> BenchRun::find_workqueue() const {
    const WorkqueueFs files(lab_.paths);
    const auto names = files.names();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names)
        if (name.starts_with("kcryptd-" + device_.number + "-")) return files.read(name);
    return fail("this kernel does not show the workqueue of dm-crypt in sysfs: 6.10 or later does");
}

Status BenchRun::choose_arms() {
    auto workqueue = find_workqueue();
    if (!workqueue) return tl::unexpected(workqueue.error());
    workqueue_ = workqueue->name;
    auto arms = scope_arms(lab_.paths, machine_, std::move(*workqueue), {}, true);
    if (!arms) return tl::unexpected(arms.error());
    result_.rows = std::move(arms->rows);
    settings_ = std::move(arms->settings);
    return {};
}

// The kernel's counts of the workqueue. After the first error, does not try again.
std::optional<WorkCounters::Traffic> BenchRun::count() {
    if (!result_.missing.empty()) return {};
    const auto traffic = tools_.counters.traffic();
    if (!traffic) {
        result_.missing = "items/s and CPU per item: " + traffic.error().text;
        return {};
    }
    const auto found = traffic->find(workqueue_);
    return found != traffic->end() ? std::optional(found->second) : std::nullopt;
}

Result<Figures> BenchRun::measure() {
    const Settings& s = result_.settings;
    const auto before = count();
    const auto ran = tools_.load.run({.path = device_.path,
                                      .number = device_.number,
                                      .writers = s.writers,
                                      .depth = s.depth,
                                      .settle = kSettle * s.seconds,
                                      .seconds = s.seconds});
    if (!ran) return tl::unexpected(ran.error());
    const auto after = count();
    Figures figures{ran->mb_per_s, static_cast<double>(count_kworkers(lab_.paths)), ran->p50, ran->p90,
                    ran->p99};
    if (before && after && after->completed > before->completed) {
        const auto items = static_cast<double>(after->completed - before->completed);
        figures.items_per_s = items / ran->seconds;
        if (after->cpu_ns > before->cpu_ns)
            figures.cpu = static_cast<double>(after->cpu_ns - before->cpu_ns) / items;
    }
    return figures;
}

Status BenchRun::compare() {
    (void)count();  // loads the BPF programs now, not during a run
    JudgeSettings settings;
    // The result names the best of all candidates, so alpha applies to all of them together, in each
    // direction.
    settings.alpha /= static_cast<double>(result_.rows.size() - 1);
    settings.max_pairs = result_.settings.rounds;
    Rounds rounds(result_.rows, settings, {"MB/s", true}, true);
    KernelValueFiles files;
    FileSwitcher switcher(files, lab_.left(), settings_);
    ctl::ProgressLine line;
    // One run first warms up caches and pools.
    auto done = run_rounds(rounds, switcher, 1,
                           {.measure = [&](std::size_t) { return measure(); },
                            .conditions = [&] { return conditions_of(lab_.paths); },
                            .random = random_number,
                            .progress = [&](const std::string& text) { line.show(text); }});
    line.end();
    if (rounds.count() > 0) rounds.end(done ? "no more pairs" : "cut off");
    result_.rounds = rounds.count();
    result_.rows = rounds.rows();
    return done;
}

}  // namespace

std::uint64_t needed_mib(const Settings& settings) {
    const std::uint64_t in_flight = std::uint64_t{settings.writers} * settings.depth * kBlock;
    return (kReserve + 2 * in_flight) >> 20U;
}

Status FioLoad::check() const {
    const auto ran = processes_.must_run({program_, "--version"}, program_ + " --version");
    if (ran || ran.error().code != ENOENT) return ran;
    return fail("fio, which writes to the device, is not installed: apt install fio", ENOENT);
}

// With --thread it is one process, so that killing it leaves no writer. fio must not make a file where the
// device is missing.
Result<LoadFigures> FioLoad::run(const LoadJob& job) {
    if (auto ours = check_number(job); !ours) return tl::unexpected(ours.error());
    const auto ms = [](double seconds) { return fmt::format("{:.0f}ms", seconds * 1000); };
    const auto ran = processes_.run({program_,
                                     "--name=bench",
                                     "--filename=" + job.path,
                                     "--allow_file_create=0",
                                     "--thread",
                                     "--rw=randwrite",
                                     fmt::format("--bs={}", kBlock),
                                     "--direct=1",
                                     "--ioengine=libaio",
                                     fmt::format("--numjobs={}", job.writers),
                                     fmt::format("--iodepth={}", job.depth),
                                     "--group_reporting",
                                     "--norandommap",
                                     "--randrepeat=0",
                                     "--scramble_buffers=0",
                                     "--time_based",
                                     "--ramp_time=" + ms(job.settle),
                                     "--runtime=" + ms(job.seconds),
                                     "--percentile_list=50:90:99",
                                     "--disk_util=0",
                                     "--eta=never",
                                     "--output-format=json"},
                                    Output::capture_all);
    if (!ran) return tl::unexpected(ran.error());
    if (!ran->failure.empty())
        return fail(fmt::format("fio: {}{}", ran->failure,
                                end_of_output(ran->output.substr(0, ran->output.find("{\n")))));
    return figures_in(ran->output, job);
}

Status run_bench(const BenchTools& tools, const ScopesOf& machine, BenchResult& result) {
    auto done = BenchRun(tools, machine, result).go();
    if (!done) result.stopped = done.error().text;
    return done;
}

}  // namespace wq::lab
