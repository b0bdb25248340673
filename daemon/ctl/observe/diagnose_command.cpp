// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "bpf/bpf_dump.h"
#include "bpf/work_monitor.h"
#include "ctl/device_mapper.h"
#include "ctl/json_values.h"
#include "ctl/kworker.h"
#include "ctl/machine.h"
#include "ctl/observe/top_command.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "machine/bpf_errors.h"
#include "machine/isolation.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastSeconds = 0.5;
constexpr double kMostSeconds = 3600;
constexpr int kTries = 5;  // to take a sample, if it fails temporarily
constexpr std::size_t kWidth = 80;
constexpr const char* kCounts = "what the kernel counts of each workqueue";
constexpr const char* kRuns = "which kworker runs which function";

double seconds_since(Clock::time_point from) {
    return std::max(std::chrono::duration<double>(Clock::now() - from).count(), 1e-3);
}

Result<WorkSample> sample_of(WorkMonitor& monitor) {
    auto sample = monitor.sample();
    for (int i = 1; i < kTries && !sample && passes(sample.error()); i++) sample = monitor.sample();
    return sample;
}

// One look. If a tool fails, this is noted in `missing`, and the look continues without it.
class Look {
  public:
    explicit Look(const DiagnoseTools& tools) : tools_(tools) {
        out_.online =
            CpuSet::parse_list(read_file(tools.paths.cpus() + "/online").value_or("0")).value_or(CpuSet{0});
        out_.isolated = read_isolation(tools.paths).cpus();
        for (const std::string& name :
             names_in(tools.paths.workqueues()).value_or(std::vector<std::string>{}))
            if (const std::string device = crypt_device_of(name); !device.empty())
                if (const auto bypass = read_crypt_bypass(tools.paths, device);
                    bypass && *bypass != CryptBypass{})
                    out_.bypassed[name] = *bypass;
        if (const auto text = read_file(tools.paths.parameters() + "/cpu_intensive_thresh_us")) {
            std::uint64_t us = 0;
            std::from_chars(text->data(), text->data() + text->size(), us);
            if (us > 0) out_.hog_ns = us * 1000;
        }
    }

    void begin() {
        const Status probes = tools_.monitor.attach({}, true);
        if (probes) attach_profile();  // loading takes time: all rates begin after it
        auto first = sample_of(tools_.monitor);
        if (!first)
            miss(probes ? kCounts : "functions, waits and all that the kernel counts of each workqueue",
                 first.error().text);
        else if (!probes)
            miss("functions and waits", probes.error().text);
        else if (!tools_.monitor.limits().empty())
            out_.missing.push_back(tools_.monitor.limits());
        counts_ = first.has_value();
        if (first) rates_.add(std::move(*first));
        if (!probes && counts_) attach_profile();
        read_workers();
        began_ = Clock::now();
    }
    void read_workers() { kworkers_.add(read_kworkers(tools_.paths)); }

    Result<DiagnoseLook> end() {
        out_.seconds = seconds_since(began_);
        read_workers();
        if (profiles_) {
            auto profile = tools_.profile.read();
            out_.profile_seconds = seconds_since(profiled_from_);
            if (profile)
                out_.profile = std::move(*profile);
            else
                miss(kRuns, profile.error().text);
        }
        if (counts_) {
            auto last = sample_of(tools_.monitor);
            if (last) out_.work = rates_.add(std::move(*last));
            if (!last) miss(kCounts, last.error().text);
        }
        const std::size_t seen = kworkers_.seen();
        if (seen == 0 && !out_.work)
            return fail("nothing can be seen: " + last_error_ + ", and /proc shows no kworkers");
        if (seen == 0) out_.missing.emplace_back("kworkers: /proc shows none (a PID namespace of its own?)");
        add_kworkers();
        note_lost();
        if (out_.work) {
            auto dump = tools_.dump();
            if (dump)
                out_.dump = std::move(*dump);
            else
                miss("pools and scopes", dump.error().text);
        }
        return std::move(out_);
    }

  private:
    void attach_profile() {
        const Status done = tools_.profile.attach(out_.isolated);
        profiled_from_ = Clock::now();
        profiles_ = done.has_value();
        out_.sampled = profiles_ && tools_.profile.limits().empty();
        const std::string why = done ? tools_.profile.limits() : done.error().text;
        if (!why.empty()) miss(kRuns, why);
        if (!done && !out_.isolated.empty()) miss("work on isolated CPUs", done.error().text);
    }

    void add_kworkers() {
        out_.kworkers = kworkers_.uses();
        for (auto& one : out_.kworkers) {
            one.cpus = cpus_of_task(tools_.paths, one.pid);
            if (one.stuck) one.sleeps_in = sleeps_in(tools_.paths, one.pid);
        }
    }

    // Notes what was seen but could not be counted or timed.
    void note_lost() {
        const auto lost = [this](std::uint64_t count, const char* one, const char* rest) {
            if (count > 0) out_.missing.push_back(plural(count, one) + rest);
        };
        if (out_.profile) {
            lost(out_.profile->lost_ticks, "sample", " of kworkers: there was no room");
            lost(out_.profile->lost_items, "item", " that started on isolated CPUs: there was no room");
        }
        if (out_.work)
            lost(out_.work->lost, "item", ": not timed (no room, or queued again before the start)");
    }

    void miss(const std::string& what, const std::string& why) {
        out_.missing.push_back(what + ": " + why);
        last_error_ = why;
    }

    const DiagnoseTools& tools_;
    bool counts_ = false, profiles_ = false;
    Clock::time_point profiled_from_, began_;
    TopRates rates_;
    KworkerWatch kworkers_;
    DiagnoseLook out_;
    std::string last_error_;
};

// Waits until UNTIL. False: a signal ends it early.
bool wait_until(TopWait& wait, Clock::time_point until) {
    for (;;)
        if (const auto event = wait.until(until, false); event != TopWait::Event::resized)
            return event == TopWait::Event::time;
}

// Reads all kworkers every second, or every quarter of SECONDS if that is shorter, so that short-lived ones
// are seen.
void watch(Look& look, double seconds, TopWait& wait) {
    const auto until = Clock::now() + duration_of(seconds);
    const auto step = duration_of(std::min(1.0, seconds / 4));
    for (auto next = Clock::now() + step;; next += step) {
        if (!wait_until(wait, std::min(next, until)) || next >= until) return;
        look.read_workers();
    }
}

struct IsolationLook {
    Isolation isolation;
    double seconds = 0;
    std::vector<IsolatedFinding> work;
    std::uint64_t lost = 0;            // items for which there was no room
    std::vector<std::string> missing;  // what cannot be seen here, and why
};

Result<IsolationLook> look_at_isolated(const DiagnoseOptions& options, const DiagnoseTools& tools,
                                       TopWait& wait) {
    IsolationLook out;
    out.isolation = read_isolation(tools.paths);
    if (out.isolation.cpus().empty()) return out;
    // The workqueues at the start and at the end, because some may appear or disappear.
    std::map<std::uint64_t, KernelWorkqueue> known;
    const auto add_names = [&] {
        const auto sample = tools.monitor.sample();
        for (const auto& one : sample ? sample->workqueues : std::vector<KernelWorkqueue>{})
            known[one.address] = one;
        if (!sample) out.missing = {"the names of workqueues: " + sample.error().text};
    };
    add_names();
    if (const Status done = tools.profile.attach(out.isolation.cpus()); !done)
        return tl::unexpected(done.error());
    const auto began = Clock::now();
    wait_until(wait, began + duration_of(options.seconds));
    out.seconds = seconds_since(began);
    const auto seen = tools.profile.read();
    if (!seen) return tl::unexpected(seen.error());
    add_names();
    out.work = isolated_findings(seen->isolated, known);
    out.lost = seen->lost_items;
    if (!tools.profile.limits().empty())
        out.missing.push_back("which work a timer queued: " + tools.profile.limits());
    return out;
}

// The keys of `isolation` in `status --json`, plus the keys that only this look provides.
nlohmann::json json_of(const IsolationLook& look) {
    nlohmann::json out = isolation_json(look.isolation);
    out.update(counted_json({{}, look.lost, look.seconds}));
    out["cpus"] = look.isolation.cpus().list();
    out["work"] = nlohmann::json(isolated_json(look.work));
    out["missing"] = look.missing;
    return out;
}

std::string text_of(const IsolationLook& look, std::size_t columns) {
    const CpuSet cpus = look.isolation.cpus();
    std::string out = isolated_cpus_text(isolation_json(look.isolation));
    Paragraphs rest(columns);
    if (cpus.empty()) {
        rest.begin(
            "No CPU is isolated: neither isolcpus= nor nohz_full= is in force, and no cpuset "
            "partition is \"isolated\".");
        if (!look.isolation.complete) rest.note("There are more cgroups than were looked at.");
        return out + (out.empty() ? "" : "\n") + std::move(rest).text();
    }
    tell_isolated(rest, look.work, cpus);
    std::uint64_t items = look.lost;
    for (const auto& one : look.work) items += one.items;
    rest.begin(items == 0 ? fmt::format("No work item started on isolated CPUs {} in {:.1f} s.", cpus.list(),
                                        look.seconds)
                          : fmt::format("{} started on isolated CPUs {} in {:.1f} s.", plural(items, "item"),
                                        cpus.list(), look.seconds));
    if (look.lost > 0) rest.note(fmt::format("There was no room for {} of them.", look.lost));
    for (const auto& one : look.missing) rest.note("Not seen: " + one);
    return out + "\n" + std::move(rest).text();
}

}  // namespace

int diagnose(const DiagnoseOptions& options, const DiagnoseTools& tools) {
    TopWait wait;
    Look look(tools);
    look.begin();
    watch(look, options.seconds, wait);
    const auto seen = look.end();
    if (!seen) return complain(seen.error().text);
    const Diagnosis found = diagnose(*seen);
    const auto written =
        wait.write(options.json ? json_text(diagnosis_json(found)) + "\n"
                                : diagnosis_text(found, std::min(terminal_columns(), kWidth)));
    return written ? kOk : complain(written.error().text);
}

int isolation(const DiagnoseOptions& options, const DiagnoseTools& tools) {
    TopWait wait;
    const auto seen = look_at_isolated(options, tools, wait);
    if (!seen) return complain("work on isolated CPUs cannot be seen: " + seen.error().text);
    const auto written =
        wait.write(options.json ? dump_json(json_of(*seen)) + "\n" : text_of(*seen, terminal_columns()));
    return written ? kOk : complain(written.error().text);
}

CLI::Option* add_look_seconds(CLI::App& command, double& seconds) {
    return command.add_option("--seconds", seconds, "How long to look; default 5")
        ->type_name(word::kNumber)
        ->check(seconds_between(kLeastSeconds, kMostSeconds));
}

CommandRun set_up_diagnose(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<DiagnoseOptions>();
    add_look_seconds(command, options->seconds);
    command.add_flag("--json", options->json, kJsonHelp);
    return [options, &invocation] {
        if (!invocation.root.empty())
            throw CLI::ValidationError("diagnose watches the running kernel: no --root");
        const auto monitor = make_bpf_monitor();
        const auto profile = make_bpf_profile();
        return diagnose(*options, {Paths{}, *monitor, *profile, read_kernel_dump});
    };
}

}  // namespace wq::ctl
