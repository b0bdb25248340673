// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/ab_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/json_values.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/left.h"
#include "ctl/machine.h"
#include "ctl/output_file.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "machine/hwloc_topology.h"

namespace wq::ctl {
namespace {

// What is compared, and how to switch between the arms.
struct Subject {
    std::string target;
    std::vector<lab::Row> rows;  // one per arm
    std::unique_ptr<lab::Switcher> switcher;
};

// Runs the command of WHAT once, run number RUN, under ARM.
Result<lab::Figures> measure(const lab::Lab& lab, const AbOptions& what, unsigned run,
                             const std::string& arm) {
    using lab::Output;
    const bool capture = what.pattern.has_value();
    const Output output = capture ? (what.show_output ? Output::capture_and_show : Output::capture)
                                  : (what.show_output ? Output::show : Output::drop);
    const std::string name = fmt::format("run {} ({})", run, arm);
    const auto ran = lab.processes.run(what.command, output);
    if (!ran) return tl::unexpected(ran.error().code == EINTR ? ran.error() : ran.error().in(name));
    if (!ran->failure.empty() && !what.ignore_failure)
        return fail(fmt::format("{}: {}: {}", name, what.command.front(), ran->failure));
    const auto value = capture ? what.pattern->read(ran->output) : static_cast<double>(ran->wall.count());
    if (!value) return tl::unexpected(value.error().in(name));
    return lab::Figures{*value, static_cast<double>(lab::count_kworkers(lab.paths))};
}

// Compares, and restores the settings in any case. Error: why it ended early, or that they are not restored.
Status compare(const lab::Lab& lab, const AbOptions& what, const Subject& subject, lab::Rounds& rounds) {
    ProgressLine line;
    unsigned runs = 0;
    const auto work = [&] {
        const lab::Edges edges{
            .measure =
                [&](std::size_t arm) {
                    runs++;
                    return measure(lab, what, runs, runs <= what.warmup ? "warm-up" : subject.rows[arm].arm);
                },
            .conditions = [&] { return lab::conditions_of(lab.paths); },
            .random = random_number,
            .progress = [&](const std::string& text) { line.show(text); }};
        auto done = lab::run_rounds(rounds, *subject.switcher, what.warmup, edges);
        line.end();
        rounds.end(done ? "no more pairs" : "cut off");
        return done;
    };
    return lab::run_guarded(
        lab, {"ab", work, subject.target.empty() ? "not put back" : subject.target + ": not put back"});
}

// The subject for comparing scopes of a workqueue or of the module parameter.
Result<Subject> scopes(const lab::Lab& lab, const AbOptions& what, lab::ValueFiles& files) {
    Options options;
    options.root = lab.paths.root;
    auto machine = read_machine(options);
    if (!machine) return tl::unexpected(machine.error());
    const auto found = std::ranges::find(machine->targets, what.target, &Workqueue::name);
    if (found == machine->targets.end())
        return fail(what.target + ": no such target; `wq-tunectl plan` lists them");
    auto scopes =
        lab::scope_arms(lab.paths, {machine->topology, machine->kernel}, std::move(*found), what.arms);
    if (!scopes) return tl::unexpected(scopes.error());
    return Subject{what.target, std::move(scopes->rows),
                   std::make_unique<lab::FileSwitcher>(files, lab.left(), std::move(scopes->settings))};
}

// The subject for comparing values of a file.
Result<Subject> values(const lab::Lab& lab, const AbOptions& what, lab::ValueFiles& files) {
    const auto path = lab::resolve_value_file(lab.paths.root, what.file);
    if (!path) return tl::unexpected(path.error().in("--file"));
    Subject out{what.file, {}, nullptr};
    for (const std::string& value : what.values) out.rows.push_back({value, {}});
    out.switcher = std::make_unique<lab::FileSwitcher>(files, lab.left(),
                                                       std::vector<lab::Setting>{{*path, what.values}});
    return out;
}

// The subject for comparing commands.
Subject commands(const lab::Lab& lab, const AbOptions& what) {
    const lab::Processes& processes = lab.processes;
    Subject out;
    for (const lab::CommandArm& arm : what.command_arms) out.rows.push_back({arm.name, {}});
    out.switcher = std::make_unique<lab::CommandSwitcher>(
        lab.left(), what.command_arms, [&](const std::string& c) { return processes.shell(c); },
        [&](const std::string& c) { return processes.shell(c, true); },
        [&] { return processes.interrupts.check(); });
    return out;
}

// Checks what can fail before anything is created below the root.
Status check_first(const std::string& root, const AbOptions& what) {
    if (!what.target.empty())
        if (const auto read = read_topology("live", root); !read) return tl::unexpected(read.error());
    if (!what.file.empty())
        if (const auto path = lab::resolve_value_file(root, what.file); !path)
            return tl::unexpected(path.error().in("--file"));
    if (what.recording.empty()) return {};
    return check_output(what.recording).map_error([](const Error& e) { return e.in("--export"); });
}

// Writes the file first, because it remains if the terminal of stdout is gone.
int show(const AbReport& report, const AbOptions& what) {
    const auto saved = what.recording.empty() ? Status{} : write_output(what.recording, ab_recording(report));
    if (what.json)
        fmt::print("{}\n", json_text(ab_json(report)));
    else if (report.rounds.count() > 0)
        fmt::print("{}", ab_table(report, terminal_columns(), wants_colour()));
    return saved ? kOk : complain(saved.error().in("--export").text);
}

int compare(const lab::Lab& lab, const AbOptions& what) {
    lab::KernelValueFiles files;
    const auto subject = !what.target.empty() ? scopes(lab, what, files)
                         : !what.file.empty() ? values(lab, what, files)
                                              : commands(lab, what);
    if (!subject) return complain(subject.error().text);
    lab::Rounds rounds(subject->rows, what.settings,
                       {what.pattern ? what.metric : kTimeCounter, what.higher_is_better}, what.all_pairs);
    const auto done = compare(lab, what, *subject, rounds);
    if (!done) complain(done.error().text);
    const int shown = show({subject->target, rounds, done ? "" : done.error().text}, what);
    return done ? shown : kFailure;
}

}  // namespace

int ab(const std::string& root, const AbOptions& what) {
    if (root.empty() && ::geteuid() != 0) return complain("ab changes settings of the kernel: only root can");
    if (const auto first = check_first(root, what); !first) return complain(first.error().text);
    lab::Processes processes;
    lab::KernelDevices devices(root, lab::runs(processes));
    const lab::Lab lab{Paths{root}, processes, devices};
    return lab::in_lab(lab, what.restore, [&] { return compare(lab, what); });
}

}  // namespace wq::ctl
