// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "ctl/command.h"
#include "ctl/device_mapper.h"
#include "ctl/kworker.h"
#include "ctl/machine.h"
#include "ctl/observe/diagnosis.h"
#include "ctl/observe/top_command.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/json_values.h"
#include "machine/bpf_errors.h"
#include "machine/isolation.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastSeconds = 0.5;
constexpr double kMostSeconds = 3600;
constexpr int kTries = 5;  // to take a sample, if it fails temporarily
constexpr std::size_t kWidth = 80;

Result<WorkSample> sample_of(WorkMonitor& monitor) {
    auto sample = monitor.sample();
    for (int i = 1; i < kTries && !sample && passes(sample.error()); i++) sample = monitor.sample();
    return sample;
}

// One look. If a part fails, this is noted in `missing`, and the look continues without it.
class Look {
  public:
    explicit Look(const DiagnoseTools& tools) : tools_(tools) {
        out_.online =
            CpuSet::parse_list(read_file(tools.paths.cpus() + "/online").value_or("0")).value_or(CpuSet{0});
        out_.isolated = read_isolation(tools.paths).cpus();
        for (const std::string& name : names_or_none(tools.paths.workqueues()))
            if (const std::string device = crypt_device_of(name); !device.empty())
                if (const auto bypass = read_crypt_bypass(tools.paths, device);
                    bypass && *bypass != CryptBypass{})
                    out_.bypassed[name] = *bypass;
        const auto threshold = read_first_line(tools.paths.parameters() + "/cpu_intensive_thresh_us");
        if (const auto us = number_of<std::uint64_t>(threshold); us && *us > 0) out_.hog_ns = *us * 1000;
    }

    // Loading takes time: all rates begin after it.
    Status begin() {
        const Status probes = tools_.monitor.attach(true, true);
        auto first = sample_of(tools_.monitor);
        if (!first) return tl::unexpected(first.error());
        const std::string limits = tools_.monitor.limits();
        if (!probes) out_.missing.push_back("functions, waits and kworkers: " + probes.error().text);
        if (probes && !limits.empty()) out_.missing.push_back(limits);
        rates_.add(std::move(*first));
        look_at_isolated();
        read_workers();
        began_ = Clock::now();
        return {};
    }
    void read_workers() { kworkers_.add(read_kworkers(tools_.paths)); }

    Result<DiagnoseLook> end() {
        out_.seconds = std::max(std::chrono::duration<double>(Clock::now() - began_).count(), 1e-3);
        read_workers();
        look_at_isolated();
        auto last = sample_of(tools_.monitor);
        if (!last) return tl::unexpected(last.error());
        out_.ran = std::move(last->ran);
        lost(last->lost_ticks, "sample", " of kworkers: there was no room");
        out_.work = rates_.add(std::move(*last)).value();
        lost(out_.work.lost, "item", ": not timed (no room, or queued again before the start)");
        out_.kworkers = kworkers_.uses();
        for (auto& one : out_.kworkers) {
            one.cpus = cpus_of_task(tools_.paths, one.pid);
            if (one.stuck) one.sleeps_in = sleeps_in(tools_.paths, one.pid);
        }
        if (auto dump = tools_.dump())
            out_.dump = std::move(*dump);
        else
            out_.missing.push_back("pools and scopes: " + dump.error().text);
        return std::move(out_);
    }

  private:
    // The kernel counts from the start of each workqueue on.
    void look_at_isolated() {
        if (out_.isolated.empty()) return;
        const auto now = tools_.monitor.list_on(out_.isolated);
        if (!now) return out_.missing.push_back("work on isolated CPUs: " + now.error().text);
        const bool first = !std::exchange(looked_, true);
        for (const KernelWorkqueue& one : *now) {
            std::uint64_t& before = started_before_[{one.address, one.name}];
            if (first)
                before = one.started;
            else if (one.started > before)
                out_.on_isolated[one.name] += one.started - before;
        }
    }

    void lost(std::uint64_t count, const char* one, const char* rest) {
        if (count > 0) out_.missing.push_back(plural(count, one) + rest);
    }

    const DiagnoseTools& tools_;
    Clock::time_point began_;
    TopRates rates_;
    KworkerWatch kworkers_;
    std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> started_before_;  // by address and name
    bool looked_ = false;
    DiagnoseLook out_;
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

}  // namespace

int diagnose(const DiagnoseOptions& options, const DiagnoseTools& tools) {
    TopWait wait;
    Look look(tools);
    if (const auto begun = look.begin(); !begun) return complain(begun.error().text);
    watch(look, options.seconds, wait);
    const auto seen = look.end();
    if (!seen) return complain(seen.error().text);
    const auto found = diagnose(*seen);
    const auto written =
        wait.write(options.json ? json_text(found) + "\n"
                                : diagnosis_text(found, *seen, std::min(terminal_columns(), kWidth)));
    return written ? kOk : complain(written.error().text);
}

CommandRun set_up_diagnose(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<DiagnoseOptions>();
    take_seconds(command.add_option("--seconds", options->seconds, "How long to look; default 5"),
                 kLeastSeconds, kMostSeconds);
    command.add_flag("--json", options->json, kJsonHelp);
    return [options, &invocation] {
        if (!invocation.root.empty())
            throw CLI::ValidationError("diagnose watches the running kernel: no --root");
        const auto monitor = make_bpf_monitor();
        return diagnose(*options, {Paths{}, *monitor, read_kernel_dump});
    };
}

}  // namespace wq::ctl
