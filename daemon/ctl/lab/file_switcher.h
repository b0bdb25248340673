// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ctl/lab/guardian.h"
#include "ctl/lab/left_store.h"
#include "ctl/lab/runner.h"
#include "ctl/lab/scope_switcher.h"
#include "ctl/lab/value_file.h"

namespace wq::ab {

// Writes values to a file of /sys or /proc. The kernel may show a different text than was written ("Y" for
// "1", "mq-deadline [none]"), so values are compared as they are read. begin() finds out how each one is
// shown.
class FileSwitcher : public Switcher {
  public:
    // PATH: a result of resolve_value_file(). STORE must be empty, and nobody else may write to it.
    FileSwitcher(ValueFiles& files, const LeftStore& store, std::string path,
                 std::vector<std::string> values);

    // Writes the current value first, to check that it can be restored, then each value once. Errors: the
    // file does not accept a value or its own current value, or shows two values alike.
    Status begin() override;
    // Errors: an external writer changed the file (it stays as found, and nothing is restored); errno.
    Status to(std::size_t arm) override;
    Status check() override;

  private:
    Status learn(std::size_t arm);

    ValueFiles& files_;
    const LeftStore& store_;
    std::vector<std::string> values_;
    std::vector<std::optional<std::string>> shown_;  // how the file shows each value; index: arm
    std::string in_place_;                           // what the file showed after our last write
    LeftFile left_;                                  // as on disk
};

// An arm of commands for /bin/sh. An empty command does nothing.
struct CommandArm {
    std::string name, apply, undo;
};

// Runs a command. Errors: the command failed (the text contains its output); EINTR if a signal ended it.
using Shell = std::function<Status(const std::string& command)>;

// Runs COMMAND with /bin/sh, like run_command().
Status run_shell(const std::string& command, const Interrupts& interrupts, const Guardian* guardian);

// Runs the undo of LEFT and clears STORE. If the undo fails, STORE keeps it, marked as failed.
Status undo(const LeftStore& store, LeftArm left, const Shell& shell);

// Runs the `apply` of an arm, and its `undo` before the next arm. The undo is saved to disk before `apply`
// runs.
class CommandSwitcher : public Switcher {
  public:
    // APPLY and UNDO run the commands; a signal must not end a command of UNDO. STORE must be empty, and
    // nobody else may write to it. GO_ON: Interrupts::check().
    CommandSwitcher(const LeftStore& store, std::vector<CommandArm> arms, Shell apply, Shell undo,
                    std::function<Status()> go_on)
        : store_(store),
          arms_(std::move(arms)),
          apply_(std::move(apply)),
          undo_(std::move(undo)),
          go_on_(std::move(go_on)) {}

    Status begin() override { return {}; }
    // Errors: a command failed. After a failed `apply` its undo is still on disk.
    Status to(std::size_t arm) override;
    Status check() override { return {}; }

  private:
    const LeftStore& store_;
    std::vector<CommandArm> arms_;
    Shell apply_, undo_;
    std::function<Status()> go_on_;
    const CommandArm* in_place_ = nullptr;
};

}  // namespace wq::ab
