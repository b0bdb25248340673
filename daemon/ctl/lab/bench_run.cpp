// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "ctl/complaints.h"
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

// The scopes to compare, the one in place first. If the pods are not known: all scopes of the kernel.
Result<std::vector<Arm>> arms_of(const PlanLine& line, const KernelInfo& kernel) {
    const auto now = line.target.scope.effective;
    if (line.candidates.size() == 1)
        return fail("all scopes make the same pools on this machine: there is nothing to compare");
    if (!line.candidates.empty() || !now) return arms_to_sweep(line);
    std::vector<Arm> arms{{*now, std::string(name_of(*now)), {}}};
    for (const Scope scope : kernel.scopes)
        if (scope != *now) arms.push_back({scope, std::string(name_of(scope)), {}});
    if (arms.size() < 2) return fail("this kernel has one scope: there is nothing to compare");
    return arms;
}

class BenchRun {
  public:
    BenchRun(const BenchTools& tools, const BenchMachine& machine, BenchResult& result)
        : tools_(tools), lab_(tools.lab), machine_(machine), result_(result) {}

    Status go();

  private:
    Status make();
    Result<Workqueue> find_workqueue() const;
    Status choose_arms();
    Status rounds();
    Result<double> measure(std::size_t arm);
    std::optional<WorkCounters::Traffic> count();
    void keep_round();
    void conclude(const Rounds& rounds);

    const BenchTools& tools_;
    const Lab& lab_;
    const BenchMachine& machine_;
    BenchResult& result_;
    KernelValueFiles files_;
    CryptDevice device_;
    std::string workqueue_;
    std::vector<std::string> scopes_;         // the arms
    std::optional<FileSwitcher> switcher_;    // after choose_arms()
    std::map<std::size_t, Figures> pending_;  // of the current round
};

Status BenchRun::go() {
    return run_guarded({.command = "bench",
                        .on_machine = lab_.paths.root.empty(),
                        .processes = lab_.processes,
                        .work =
                            [&] {
                                auto done = make();
                                if (done) done = choose_arms();
                                if (done) done = switcher_->begin();
                                return done ? rounds() : done;
                            },
                        .restore =
                            [&] {
                                ctl::Complaints log(LOG_NOTICE);
                                return lab_.put_back(log, false);
                            },
                        .left = "a device or its setting is left"});
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
    if (auto free = check_not_set(lab_.paths, workqueue_); !free) return free;
    const PlanLine line = plan_by_cpus(machine_.topology, machine_.kernel, std::move(*workqueue));
    const auto arms = arms_of(line, machine_.kernel);
    if (!arms) return tl::unexpected(arms.error());
    for (const Arm& arm : *arms) {
        scopes_.push_back(arm.word);
        result_.rows.push_back({arm.word, pools_of(line, arm.scope), {}, {}});
    }
    switcher_.emplace(files_, lab_.left(), scope_settings(lab_.paths, workqueue_, *arms, machine_.kernel));
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

Result<double> BenchRun::measure(std::size_t arm) {
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
    Figures figures{.mb_per_s = ran->mb_per_s,
                    .p50 = ran->p50,
                    .p90 = ran->p90,
                    .p99 = ran->p99,
                    .kworkers = static_cast<double>(count_kworkers(lab_.paths))};
    if (before && after && after->completed > before->completed) {
        const auto items = static_cast<double>(after->completed - before->completed);
        figures.items_per_s = items / ran->seconds;
        if (after->cpu_ns > before->cpu_ns)
            figures.cpu = static_cast<double>(after->cpu_ns - before->cpu_ns) / items;
    }
    pending_[arm] = figures;
    return figures.mb_per_s;
}

void BenchRun::keep_round() {
    for (const auto& [arm, figures] : pending_) result_.rows.at(arm).runs.push_back(figures);
    pending_.clear();
}

void BenchRun::conclude(const Rounds& rounds) {
    result_.rounds = rounds.count();
    for (std::size_t arm = 1; arm < scopes_.size(); arm++) {
        result_.rows.at(arm).result = rounds.result(arm);
        if (rounds.count() == 0) result_.rows.at(arm).result.verdict = "";
    }
}

Status BenchRun::rounds() {
    (void)count();  // loads the BPF programs now, not during a run
    // The first run warms up caches and pools.
    if (auto switched = switcher_->to(0); !switched) return switched;
    if (const auto warm = measure(0); !warm) return tl::unexpected(warm.error());
    pending_.clear();
    JudgeSettings settings;
    // The result names the best of all candidates, so alpha applies to all of them together, in each
    // direction.
    settings.alpha /= static_cast<double>(scopes_.size() - 1);
    settings.max_pairs = result_.settings.rounds;
    Rounds rounds(scopes_.size(), settings, {"MB/s", true}, true);
    ctl::ProgressLine line;
    auto done = run_rounds(rounds, {.switch_to = [&](std::size_t arm) { return switcher_->to(arm); },
                                    .measure = [&](std::size_t arm) { return measure(arm); },
                                    .conditions = [&] { return conditions_of(lab_.paths); },
                                    .random = random_number,
                                    .progress = [&] { line.show(rounds.progress(scopes_)); },
                                    .counts = [&] { keep_round(); }});
    line.end();
    if (done) done = switcher_->check();
    rounds.end(done ? "no more pairs" : "cut off");
    conclude(rounds);
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

Status run_bench(const BenchTools& tools, const BenchMachine& machine, BenchResult& result) {
    auto done = BenchRun(tools, machine, result).go();
    if (!done) result.stopped = done.error().text;
    return done;
}

}  // namespace wq::lab
