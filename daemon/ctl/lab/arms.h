// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/lab/left.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "plan/plan.h"
#include "targets/step.h"

namespace wq::lab {

// Parses "cache,smt,smt:strict": at least two arms, each once. If one is strict, the arms without ":strict"
// are not strict; else no arm changes strictness. Errors: EINVAL.
Result<std::vector<Arm>> parse_arms(std::string_view text);
// Returns the scope in place, then one scope of each other partition, coarsest first. LINE: the target's
// plan, with candidates. Errors: the target's pods are not known, or there is only one partition.
Result<std::vector<Arm>> arms_to_sweep(const PlanLine& line);
// The plan of TARGET by its CPUs alone. Ignores the policy, which is for the daemon.
PlanLine plan_by_cpus(const Topology& topology, const KernelInfo& kernel, Workqueue target);
// How many pools SCOPE makes; empty if the kernel's pods cannot be derived.
std::optional<std::size_t> pools_of(const PlanLine& line, Scope scope);
// Why ARMS cannot be compared on LINE's target; "" if they can.
std::string why_not(const PlanLine& line, const std::vector<Arm>& arms, const KernelInfo& kernel);
// Error: TARGET may hold a setting that wq-tuned left, which must not be taken for the kernel's.
Status check_not_set(const Paths& paths, const std::string& target);

// Switches between the arms of a comparison. The original state is saved to disk before the first change, so
// that any process that finds it there can restore it.
class Switcher {
  public:
    Switcher() = default;
    Switcher(const Switcher&) = delete;
    Switcher& operator=(const Switcher&) = delete;
    virtual ~Switcher() = default;

    // Saves the original state to disk. Call it once, before the other functions.
    virtual Status begin() { return {}; }
    // Switches to arm number ARM. Writes even if it is already in place, so that all runs start the same way.
    // Errors: the change failed, or an external writer changed what the arms change.
    virtual Status to(std::size_t arm) = 0;
    // Checks for an external writer. Does not switch.
    virtual Status check() { return {}; }
};

// A file that the arms write.
struct Setting {
    std::string path;                 // absolute, without links
    std::vector<std::string> values;  // index: arm
    // `word`: each value is the first word that the file then shows.
    Form form = Form::choice;
    // If not empty: the file ignores a write of the value that it has, so another of these is written in
    // between; the best first.
    std::vector<std::string> vias = {};
};

// The files of TARGET, a workqueue or the module parameter. KERNEL must have the scopes of all ARMS.
std::vector<Setting> scope_settings(const Paths& paths, const std::string& target,
                                    const std::vector<Arm>& arms, const KernelInfo& kernel);

// Writes values to files of /sys or /proc. For Form::choice, the kernel may show a different text than was
// written ("Y" for "1", "mq-deadline [none]"), so values are compared as they are read, and begin() finds out
// how each one is shown.
class FileSwitcher : public Switcher {
  public:
    // STORE must not have these files, and nobody else may write to it.
    FileSwitcher(ValueFiles& files, const LeftStore& store, std::vector<Setting> settings);

    // For Form::choice, writes the current value first, to check that it can be restored, then each value
    // once. Errors: the file does not accept a value or its own current value, or shows two values alike.
    Status begin() override;
    // Errors: an external writer changed a file (it stays as found, and is not restored); the file is
    // another one now; the kernel stored another value; errno.
    Status to(std::size_t arm) override;
    Status check() override;

  private:
    struct File {
        Setting setting;
        std::vector<std::optional<std::string>> shown;  // how the file shows each value; index: arm
        std::string in_place;                           // what the file showed after our last write
        LeftFile left;                                  // as on disk
    };
    Status begin(File& file);
    Status check(const File& file);
    Status write(File& file, std::size_t arm);
    Status write_value(const File& file, const std::string& via, const std::string& value);

    ValueFiles& files_;
    const LeftStore store_;
    std::vector<File> all_;
};

// An arm of commands for /bin/sh. An empty command does nothing.
struct CommandArm {
    std::string name, apply, undo;
};

// Runs the `apply` of an arm, and its `undo` before the next arm. The undo is saved to disk before `apply`
// runs.
class CommandSwitcher : public Switcher {
  public:
    // APPLY and UNDO run the commands; a signal must not end a command of UNDO. STORE must have no arm, and
    // nobody else may write to it. GO_ON: Interrupts::check().
    CommandSwitcher(LeftStore store, std::vector<CommandArm> arms, Shell apply, Shell undo,
                    std::function<Status()> go_on)
        : store_(std::move(store)),
          arms_(std::move(arms)),
          apply_(std::move(apply)),
          undo_(std::move(undo)),
          go_on_(std::move(go_on)) {}

    // Errors: a command failed. After a failed `apply` its undo is still on disk.
    Status to(std::size_t arm) override;

  private:
    const LeftStore store_;
    std::vector<CommandArm> arms_;
    Shell apply_, undo_;
    std::function<Status()> go_on_;
    const CommandArm* in_place_ = nullptr;
};

}  // namespace wq::lab
