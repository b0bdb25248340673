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
#include "ctl/lab/ab_report.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/file_switcher.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/left_store.h"
#include "ctl/lab/restore_left.h"
#include "ctl/lab/runner.h"
#include "ctl/lab/scope_switcher.h"
#include "ctl/lab/session.h"
#include "ctl/lab/value_file.h"
#include "ctl/machine.h"
#include "ctl/output_file.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "machine/cpu_files.h"
#include "machine/hwloc_topology.h"
#include "machine/workqueue_fs.h"

namespace wq::ctl {
namespace {

std::string left_path(const Paths& paths) {
    return paths.run() + "/ab.json";
}

// Runs commands as child processes.
struct Processes {
    ab::Interrupts interrupts;
    const ab::Guardian* guardian = nullptr;  // while it runs

    [[nodiscard]] Status shell(const std::string& command) const {
        return ab::run_shell(command, interrupts, guardian);
    }
    // Like shell(), but signals do not end the command.
    [[nodiscard]] Status shell_to_the_end(const std::string& command) const {
        return ab::run_shell(command, interrupts.none(), guardian);
    }
};

// Restores what comparisons left, according to the files on disk. AGAIN: also runs an undo that failed
// before. Logs and keeps what cannot be restored. Returns whether nothing is left.
bool put_back(const Paths& paths, const Processes& processes, Log& log, bool again) {
    const ab::LeftStore left(left_path(paths));
    ab::KernelValueFiles value_files;
    const bool back = ab::restore_left(
        value_files, left, [&](const std::string& c) { return processes.shell_to_the_end(c); }, log, again);
    return ab::restore_scopes(paths, log) && back;
}

// Restores what an earlier ab or comparison left because it was killed together with its guardian.
Status put_back_earlier(const Paths& paths, const Processes& processes) {
    Complaints log(LOG_INFO);
    if (put_back(paths, processes, log, false)) return {};
    return fail("settings of an earlier ab, bench or comparison could not be restored");
}

// What is compared, and how to switch between the arms.
struct Subject {
    std::string target;
    std::vector<AbReport::Row> rows;  // one per arm
    std::unique_ptr<ab::Switcher> switcher;
};

// One comparison, from the first change to the last.
class Run {
  public:
    Run(const Options& options, const AbOptions& what, Processes& processes, Subject subject)
        : what_(what),
          paths_{options.root},
          on_machine_(options.root.empty()),
          processes_(processes),
          subject_(std::move(subject)),
          comparison_(subject_.rows.size(), what.settings,
                      {what.pattern ? what.metric : kTimeCounter, what.higher_is_better}, what.all_pairs) {}

    // Restores the settings in any case. Error: why it ended early, or that the settings are not restored.
    Status go();
    [[nodiscard]] AbReport report(const std::string& stopped) const {
        return {subject_.target, subject_.rows, comparison_, what_.settings, stopped};
    }

  private:
    Status rounds();
    Status warm_up();
    Result<double> measure(const std::string& arm);

    const AbOptions& what_;
    Paths paths_;
    bool on_machine_;
    Processes& processes_;
    Subject subject_;
    ab::Comparison comparison_;
    std::map<std::size_t, double> kworkers_;  // of the current round, by arm
    unsigned runs_ = 0;
};

Result<double> Run::measure(const std::string& arm) {
    using Output = ab::Output;
    const bool capture = what_.pattern.has_value();
    const Output output = capture ? (what_.show_output ? Output::capture_and_show : Output::capture)
                                  : (what_.show_output ? Output::show : Output::drop);
    const auto name = [&] { return fmt::format("run {} ({})", runs_, arm); };
    runs_++;
    const auto run = ab::run_command(what_.command, output, processes_.interrupts, processes_.guardian);
    if (!run && run.error().code == EINTR) return tl::unexpected(run.error());
    if (!run) return tl::unexpected(run.error().in(name()));
    if (!run->failure.empty() && !what_.ignore_failure)
        return fail(fmt::format("{}: {}: {}", name(), what_.command.front(), run->failure));
    if (!capture) return static_cast<double>(run->wall.count());
    return what_.pattern->read(run->output).map_error([&](const Error& e) { return e.in(name()); });
}

Status Run::warm_up() {
    if (what_.warmup == 0) return {};
    if (auto switched = subject_.switcher->to(0); !switched) return switched;
    for (unsigned i = 0; i < what_.warmup; i++)
        if (const auto run = measure("warm-up"); !run) return tl::unexpected(run.error());
    return {};
}

Status Run::rounds() {
    if (auto begun = subject_.switcher->begin(); !begun) return begun;
    if (auto warm = warm_up(); !warm) return warm;
    ProgressLine line;
    const ab::Edges edges{.switch_to = [&](std::size_t arm) { return subject_.switcher->to(arm); },
                          .measure =
                              [&](std::size_t arm) {
                                  auto value = measure(subject_.rows[arm].arm);
                                  if (value) kworkers_[arm] = ab::count_kworkers(paths_);
                                  return value;
                              },
                          .conditions =
                              [&] {
                                  return ab::Conditions{time_suspended(), cpu_state(paths_)};
                              },
                          .random = random_number,
                          .progress =
                              [&](const ab::Comparison& c) {
                                  line.show(ab_progress(c, subject_.rows, what_.settings.max_pairs));
                              },
                          .counts =
                              [&] {
                                  for (const auto& [arm, count] : kworkers_)
                                      subject_.rows[arm].kworkers.push_back(count);
                                  kworkers_.clear();
                              }};
    auto done = ab::run_rounds(comparison_, edges);
    line.end();
    return done ? subject_.switcher->check() : done;
}

Status Run::go() {
    return ab::run_guarded(
        {.command = "ab",
         .on_machine = on_machine_,
         .watched = [&](const ab::Guardian* guardian) { processes_.guardian = guardian; },
         .work =
             [&] {
                 auto done = rounds();
                 comparison_.end(done ? "no more pairs" : "cut off");
                 return done;
             },
         .restore =
             [&] {
                 Complaints log(LOG_NOTICE);
                 return put_back(paths_, processes_, log, false);
             },
         .left = subject_.target.empty() ? "not put back" : subject_.target + ": not put back"});
}

// The subject for comparing scopes of a workqueue or of the module parameter.
Result<Subject> scopes(const Options& options, const AbOptions& what, WorkqueueFs& files,
                       BaselineStore& store) {
    if (auto opened = ab::open_scope_store(store, files, what.target); !opened)
        return tl::unexpected(opened.error());
    auto machine = read_machine(options);
    if (!machine) return tl::unexpected(machine.error());
    const auto found = std::ranges::find(machine->targets, what.target, &Workqueue::name);
    if (found == machine->targets.end())
        return fail(what.target + ": no such target; `wq-tunectl plan` lists them");
    PlanLine line = ab::plan_by_cpus(machine->topology, machine->kernel, std::move(*found));
    if (const auto why = ab::why_not(line, what.arms, machine->kernel); !why.empty())
        return fail(what.target + ": " + why);
    auto arms = what.sweep ? ab::arms_to_sweep(line) : what.arms;
    if (!arms) return tl::unexpected(arms.error());
    Subject out{what.target, {}, nullptr};
    for (const Arm& arm : *arms) {
        const Candidate* candidate = candidate_with(line, arm.scope);
        out.rows.push_back(
            {arm.name(), candidate != nullptr ? std::optional(candidate->pools) : std::nullopt, {}});
    }
    out.switcher = std::make_unique<ab::ScopeSwitcher>(files, store, std::move(line.target), std::move(*arms),
                                                       machine->kernel);
    return out;
}

// The subject for comparing values of a file.
Result<Subject> values(const Options& options, const AbOptions& what, ab::ValueFiles& files,
                       const ab::LeftStore& left) {
    const auto path = ab::resolve_value_file(options.root, what.file);
    if (!path) return tl::unexpected(path.error().in("--file"));
    Subject out{what.file, {}, nullptr};
    for (const std::string& value : what.values) out.rows.push_back({value, {}, {}});
    out.switcher = std::make_unique<ab::FileSwitcher>(files, left, *path, what.values);
    return out;
}

// The subject for comparing commands.
Subject commands(const AbOptions& what, const Processes& processes, const ab::LeftStore& left) {
    Subject out;
    for (const ab::CommandArm& arm : what.command_arms) out.rows.push_back({arm.name, {}, {}});
    out.switcher = std::make_unique<ab::CommandSwitcher>(
        left, what.command_arms, [&](const std::string& c) { return processes.shell(c); },
        [&](const std::string& c) { return processes.shell_to_the_end(c); },
        [&] { return processes.interrupts.check(); });
    return out;
}

// Checks what can fail before anything is created below the root.
Status check_first(const Options& options, const AbOptions& what) {
    if (!what.target.empty())
        if (const auto read = read_topology(options.topology, options.root); !read)
            return tl::unexpected(read.error());
    if (!what.file.empty())
        if (const auto path = ab::resolve_value_file(options.root, what.file); !path)
            return tl::unexpected(path.error().in("--file"));
    if (what.recording.empty()) return {};
    return check_output(what.recording).map_error([](const Error& e) { return e.in("--export"); });
}

// Writes the file first, because it remains if the terminal of stdout is gone.
int show(const AbReport& report, const AbOptions& what) {
    const auto saved = what.recording.empty() ? Status{} : write_output(what.recording, ab_recording(report));
    if (what.json)
        fmt::print("{}\n", json_text(ab_json(report)));
    else if (report.comparison.rounds() > 0)
        fmt::print("{}", ab_table(report, terminal_columns(), wants_colour()));
    return saved ? kOk : complain(saved.error().in("--export").text);
}

}  // namespace

int ab(const Options& options, const AbOptions& what) {
    if (options.root.empty() && ::geteuid() != 0)
        return complain("ab changes settings of the kernel: only root can");
    if (const auto first = check_first(options, what); !first) return complain(first.error().text);
    const Paths paths{options.root};
    const auto lock = ab::lock_out_daemon(paths);
    if (!lock) return complain(lock.error().text);
    Processes processes;
    if (what.restore) {
        Complaints log(LOG_INFO);
        return put_back(paths, processes, log, true) ? kOk : kFailure;
    }
    if (const auto earlier = put_back_earlier(paths, processes); !earlier)
        return complain(earlier.error().text);
    WorkqueueFs files(paths);
    BaselineStore store(paths.baseline());
    ab::KernelValueFiles value_files;
    const ab::LeftStore left(left_path(paths));
    auto subject = !what.target.empty() ? scopes(options, what, files, store)
                   : !what.file.empty() ? values(options, what, value_files, left)
                                        : commands(what, processes, left);
    if (!subject) return complain(subject.error().text);
    Run run(options, what, processes, std::move(*subject));
    const auto done = run.go();
    if (!done) complain(done.error().text);
    const int shown = show(run.report(done ? "" : done.error().text), what);
    return done ? shown : kFailure;
}

}  // namespace wq::ctl
