// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/ab_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/complaints.h"
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
    std::vector<AbReport::Row> rows;  // one per arm
    std::unique_ptr<lab::Switcher> switcher;
};

// One comparison, from the first change to the last.
class AbRun {
  public:
    AbRun(const lab::Lab& lab, const AbOptions& what, Subject subject)
        : lab_(lab),
          what_(what),
          subject_(std::move(subject)),
          rounds_(subject_.rows.size(), what.settings,
                  {what.pattern ? what.metric : kTimeCounter, what.higher_is_better}, what.all_pairs) {}

    // Restores the settings in any case. Error: why it ended early, or that the settings are not restored.
    Status go();
    [[nodiscard]] AbReport report(const std::string& stopped) const {
        return {subject_.target, subject_.rows, rounds_, what_.settings, stopped};
    }

  private:
    Status run();
    Status warm_up();
    Result<double> measure(const std::string& arm);

    const lab::Lab& lab_;
    const AbOptions& what_;
    Subject subject_;
    lab::Rounds rounds_;
    std::map<std::size_t, double> kworkers_;  // of the current round, by arm
    unsigned runs_ = 0;
};

Result<double> AbRun::measure(const std::string& arm) {
    using lab::Output;
    const bool capture = what_.pattern.has_value();
    const Output output = capture ? (what_.show_output ? Output::capture_and_show : Output::capture)
                                  : (what_.show_output ? Output::show : Output::drop);
    const std::string name = fmt::format("run {} ({})", ++runs_, arm);
    const auto run = lab_.processes.run(what_.command, output);
    if (!run) return tl::unexpected(run.error().code == EINTR ? run.error() : run.error().in(name));
    if (!run->failure.empty() && !what_.ignore_failure)
        return fail(fmt::format("{}: {}: {}", name, what_.command.front(), run->failure));
    if (!capture) return static_cast<double>(run->wall.count());
    return what_.pattern->read(run->output).map_error([&](const Error& e) { return e.in(name); });
}

Status AbRun::warm_up() {
    if (what_.warmup == 0) return {};
    if (auto switched = subject_.switcher->to(0); !switched) return switched;
    for (unsigned i = 0; i < what_.warmup; i++)
        if (const auto run = measure("warm-up"); !run) return tl::unexpected(run.error());
    return {};
}

Status AbRun::run() {
    if (auto begun = subject_.switcher->begin(); !begun) return begun;
    if (auto warm = warm_up(); !warm) return warm;
    ProgressLine line;
    std::vector<std::string> names;
    for (const AbReport::Row& row : subject_.rows) names.push_back(row.arm);
    auto done =
        lab::run_rounds(rounds_, {.switch_to = [&](std::size_t arm) { return subject_.switcher->to(arm); },
                                  .measure =
                                      [&](std::size_t arm) {
                                          auto value = measure(names[arm]);
                                          if (value) kworkers_[arm] = lab::count_kworkers(lab_.paths);
                                          return value;
                                      },
                                  .conditions = [&] { return lab::conditions_of(lab_.paths); },
                                  .random = random_number,
                                  .progress = [&] { line.show(rounds_.progress(names)); },
                                  .counts =
                                      [&] {
                                          for (const auto& [arm, count] : kworkers_)
                                              subject_.rows[arm].kworkers.push_back(count);
                                          kworkers_.clear();
                                      }});
    line.end();
    return done ? subject_.switcher->check() : done;
}

Status AbRun::go() {
    return lab::run_guarded(
        {.command = "ab",
         .on_machine = lab_.paths.root.empty(),
         .processes = lab_.processes,
         .work =
             [&] {
                 auto done = run();
                 rounds_.end(done ? "no more pairs" : "cut off");
                 return done;
             },
         .restore =
             [&] {
                 Complaints log(LOG_NOTICE);
                 return lab_.put_back(log, false);
             },
         .left = subject_.target.empty() ? "not put back" : subject_.target + ": not put back"});
}

// The subject for comparing scopes of a workqueue or of the module parameter.
Result<Subject> scopes(const lab::Lab& lab, const AbOptions& what, lab::ValueFiles& files) {
    if (auto free = lab::check_not_set(lab.paths, what.target); !free) return tl::unexpected(free.error());
    Options options;
    options.root = lab.paths.root;
    auto machine = read_machine(options);
    if (!machine) return tl::unexpected(machine.error());
    const auto found = std::ranges::find(machine->targets, what.target, &Workqueue::name);
    if (found == machine->targets.end())
        return fail(what.target + ": no such target; `wq-tunectl plan` lists them");
    const PlanLine line = lab::plan_by_cpus(machine->topology, machine->kernel, std::move(*found));
    if (const auto why = lab::why_not(line, what.arms, machine->kernel); !why.empty())
        return fail(what.target + ": " + why);
    const auto arms = what.sweep ? lab::arms_to_sweep(line) : what.arms;
    if (!arms) return tl::unexpected(arms.error());
    Subject out{what.target, {}, nullptr};
    for (const Arm& arm : *arms) out.rows.push_back({arm.name(), lab::pools_of(line, arm.scope), {}});
    out.switcher = std::make_unique<lab::FileSwitcher>(
        files, lab.left(), lab::scope_settings(lab.paths, what.target, *arms, machine->kernel));
    return out;
}

// The subject for comparing values of a file.
Result<Subject> values(const lab::Lab& lab, const AbOptions& what, lab::ValueFiles& files) {
    const auto path = lab::resolve_value_file(lab.paths.root, what.file);
    if (!path) return tl::unexpected(path.error().in("--file"));
    Subject out{what.file, {}, nullptr};
    for (const std::string& value : what.values) out.rows.push_back({value, {}, {}});
    out.switcher = std::make_unique<lab::FileSwitcher>(files, lab.left(),
                                                       std::vector<lab::Setting>{{*path, what.values}});
    return out;
}

// The subject for comparing commands.
Subject commands(const lab::Lab& lab, const AbOptions& what) {
    const lab::Processes& processes = lab.processes;
    Subject out;
    for (const lab::CommandArm& arm : what.command_arms) out.rows.push_back({arm.name, {}, {}});
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
    auto subject = !what.target.empty() ? scopes(lab, what, files)
                   : !what.file.empty() ? values(lab, what, files)
                                        : commands(lab, what);
    if (!subject) return complain(subject.error().text);
    AbRun run(lab, what, std::move(*subject));
    const auto done = run.go();
    if (!done) complain(done.error().text);
    const int shown = show(run.report(done ? "" : done.error().text), what);
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
