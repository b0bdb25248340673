// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include "bpf/work_sums.h"
#include "counters/counter_table.h"
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

// The figures of LOAD in OUTPUT of fio: messages, if any, then one JSON document.
Result<Figures> figures_in(const std::string& output, const std::string& load) {
    try {
        const auto document = nlohmann::json::parse(output.substr(std::min(output.find('{'), output.size())));
        const auto& done = document.at("jobs").at(0).at(load);
        const double mb_per_s = done.at("bw_bytes").get<double>() / kMega;
        if (mb_per_s <= 0) return fail("fio: no " + load + " ended in time; give it more --seconds");
        const auto& times = done.at("clat_ns").at("percentile");
        Figures out{.value = mb_per_s, .mb_per_s = mb_per_s};
        out.io_p50 = times.at("50.000000").get<double>();
        out.io_p99 = times.at("99.000000").get<double>();
        out.seconds = done.at("runtime").get<double>() / 1000;
        return out;
    } catch (const nlohmann::json::exception& e) {
        return fail(fmt::format("fio: its output: {}", json_error_text(e.what())));
    }
}

// Saves the names to disk before it makes the devices.
Result<CryptDevice> make_device(Devices& devices, OwnedStore& store) {
    const std::string name = new_device_name();
    const char* before = devices.has_driver() ? kRemoved : kRemovedWithDriver;
    store.put({name, 0, {Knob::device, before}}).announce({});
    if (auto saved = store.save(); !saved) return tl::unexpected(saved.error());
    if (auto loaded = devices.load_driver(); !loaded) return tl::unexpected(loaded.error());
    const auto ram = devices.make_ram(name, kDeviceBytes);
    if (!ram) return tl::unexpected(ram.error());
    return devices.make_crypt(name, *ram, kDeviceBytes);
}

Result<Workqueue> workqueue_of(const Paths& paths, const CryptDevice& device) {
    const WorkqueueFs files(paths);
    const auto names = files.names();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names)
        if (name.starts_with("kcryptd-" + device.number + "-")) return files.read(name);
    return fail("this kernel does not show the workqueue of dm-crypt in sysfs: 6.10 or later does");
}

// Counts the work of one workqueue, a window for each run. After the first error, which MISSING tells, it
// does not try again.
class Counting {
  public:
    Counting(WorkCounters& counters, const std::string& workqueue, std::string& missing)
        : counters_(counters),
          missing_(missing),
          counts_(has(counters.attach({workqueue}, {.enqueue = true}))) {
        if (counts_) missing_ = counters_.limits();
    }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    ~Counting() { counters_.detach(); }

    void begin() { counts_ = counts_ && has(counters_.begin(0, 0)); }

    // Adds what was counted since begin() to FIGURES, which has the seconds.
    void end(Figures& figures) {
        if (!counts_) return;
        // Each run follows a write, which makes new pools, whose counts begin at 0. The replaced ones still
        // count for a moment, so no count is taken before the run.
        const auto traffic = counters_.traffic_of(0);
        counters_.pause(0);
        const auto count = counters_.read(0, 0);
        counts_ = has(traffic) && has(count);
        if (!counts_ || traffic->started == 0) return;
        const auto items = static_cast<double>(traffic->started);
        figures.items_per_s = items / figures.seconds;
        if (traffic->cpu_ns > 0) figures.cpu = static_cast<double>(traffic->cpu_ns) / items;
        if (count->pools > 0) figures.pools = count->pools;
        if (count->workers > 0) figures.kworkers = count->workers;
        add_times(*count, figures);
        // All runs but the first, which warms up, time the same share of the items.
        if (!sampled_) counters_.sample(0, sampled_every(items));
        sampled_ = true;
    }

  private:
    static void add_times(const WorkCount& count, Figures& figures) {
        Histogram times(kTimeBits);
        for (unsigned i = 0; i < count.enqueued.size(); i++) times.add(i, count.enqueued[i]);
        if (times.items() == 0) return;
        figures.p50 = times.percentile(0.5);
        figures.p90 = times.percentile(0.9);
        figures.p95 = times.percentile(0.95);
        figures.p99 = times.percentile(0.99);
    }
    template <class T>
    bool has(const T& result) {
        if (!result) missing_ = "items, enqueue, pools, kworkers and CPU time: " + result.error().text;
        return result.has_value();
    }

    WorkCounters& counters_;
    std::string& missing_;
    bool counts_;
    bool sampled_ = false;
};

// The rows of SUBJECT once for each of LOADS, and its values likewise: an arm is a scope under a load.
void add_loads(Subject& subject, const std::vector<std::string>& loads) {
    const std::vector<Row> scopes = std::exchange(subject.rows, {});
    const std::vector<Values> words = std::exchange(subject.values, {});
    for (const std::string& load : loads) {
        const std::size_t reference = subject.rows.size();
        for (Row row : scopes) {
            row.load = load;
            row.reference = reference;
            subject.rows.push_back(std::move(row));
        }
        subject.values.insert(subject.values.end(), words.begin(), words.end());
    }
}

Status measure_scopes(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& s,
                      Measured& out) {
    const Lab& lab = tools.lab;
    OwnedStore store(lab.paths.lab(), OwnedStore::Of::lab);
    const auto device = make_device(lab.devices, store);
    if (!device) return tl::unexpected(device.error());
    auto workqueue = workqueue_of(lab.paths, *device);
    if (!workqueue) return tl::unexpected(workqueue.error());
    auto subject = scope_arms(lab.paths, machine, std::move(*workqueue), {}, true);
    if (!subject) return tl::unexpected(subject.error());
    add_loads(*subject, s.loads);
    Counting counting(tools.counters, subject->name, out.missing);
    const auto measure = [&](std::size_t arm) -> Result<Figures> {
        counting.begin();
        auto figures = tools.fio.run(*device, s, subject->rows[arm].load);
        if (figures) counting.end(*figures);
        return figures;
    };
    JudgeSettings settings;
    // The result names the best of all candidates, so alpha applies to all of them together, in each
    // direction. What makes the same pods as another is never the best.
    const auto candidates = std::ranges::count(subject->rows, "", &Row::same) - std::ssize(s.loads);
    settings.alpha /= static_cast<double>(candidates);
    settings.max_pairs = s.rounds;
    Rounds rounds(subject->rows, settings, {"MB/s", true}, true);
    // One run first warms up caches and pools.
    auto done = compare(lab, store, *subject, rounds, 1, measure);
    out.rounds = rounds.count();
    out.rows = rounds.rows();
    return done;
}

}  // namespace

Status Fio::check() const {
    auto ran = processes_.must_run({program_, "--version"}, program_ + " --version");
    if (ran || ran.error().code != ENOENT) return ran;
    return fail("fio, which makes the load, is not installed: apt install fio", ENOENT);
}

// With --thread it is one process, so that killing it leaves no thread. fio must not make a file where the
// device is missing.
Result<Figures> Fio::run(const CryptDevice& device, const BenchSettings& settings, const std::string& load) {
    if (auto ours = check_number(device); !ours) return tl::unexpected(ours.error());
    const double settle = kSettle * settings.seconds;
    const auto ran = processes_.run({program_,
                                     "--name=bench",
                                     "--filename=" + device.path,
                                     "--allow_file_create=0",
                                     "--thread",
                                     "--rw=rand" + load,
                                     fmt::format("--bs={}", kBlock),
                                     "--direct=1",
                                     "--ioengine=libaio",
                                     fmt::format("--numjobs={}", settings.threads),
                                     fmt::format("--iodepth={}", settings.depth),
                                     "--group_reporting",
                                     "--norandommap",
                                     "--randrepeat=0",
                                     "--scramble_buffers=0",
                                     "--time_based",
                                     fmt::format("--ramp_time={:.0f}ms", 1000 * settle),
                                     fmt::format("--runtime={:.0f}ms", 1000 * settings.seconds),
                                     "--percentile_list=50:99",
                                     "--disk_util=0",
                                     "--eta=never",
                                     "--output-format=json"},
                                    Output::capture_all);
    if (!ran) return tl::unexpected(ran.error());
    if (!ran->failure.empty())
        return fail(fmt::format("fio: {}{}", ran->failure,
                                end_of_output(ran->output.substr(0, ran->output.find("{\n")))));
    auto figures = figures_in(ran->output, load);
    if (figures) figures->seconds += settle;
    return figures;
}

Measured run_bench(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& settings) {
    Measured out;
    const auto done =
        run_guarded(tools.lab, "bench", [&] { return measure_scopes(tools, machine, settings, out); });
    if (!done) out.stopped = done.error().text;
    return out;
}

}  // namespace wq::lab
