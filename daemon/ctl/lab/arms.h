// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/lab/left.h"
#include "ctl/lab/rounds.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"
#include "machine/workqueue.h"
#include "targets/step.h"

namespace wq::lab {

// The parts of TEXT between commas.
std::vector<std::string> split(std::string_view text);
// Parses "cache,smt,smt:strict": at least two arms, each once. If one is strict, the arms without ":strict"
// are not strict; else no arm changes strictness. Errors: EINVAL.
Result<std::vector<Arm>> parse_arms(std::string_view text);
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

// An arm of commands for /bin/sh. An empty command does nothing.
struct CommandArm {
    std::string name, apply, undo;
};

// What is compared.
struct Subject {
    std::string name;                       // "" if it has none
    std::vector<Row> rows;                  // one per arm, the reference first
    std::vector<Setting> settings = {};     // what the arms write
    std::vector<CommandArm> commands = {};  // or run: one per arm
};

struct ScopesOf {
    const Topology& topology;
    const KernelInfo& kernel;
};
// ARMS, as they are parsed, of TARGET. If empty: the scope in place, then one scope of each other partition,
// coarsest first; or, if ALL, all scopes of the kernel. The plan is by the CPUs alone, without the policy,
// which is for the daemon. Errors: TARGET must not be written, or may hold a setting that wq-tuned left; the
// kernel lacks a scope; nothing to compare.
Result<Subject> scope_arms(const Paths& paths, const ScopesOf& machine, Workqueue target,
                           std::vector<Arm> arms, bool all = false);

// Puts the arms of a subject in place. What undoes a write or a command is on disk before it.
//
// Of a file with Form::choice, the kernel may show a different text than was written ("Y" for "1",
// "mq-deadline [none]"), so begin() finds out how each value is shown. The undo of a command runs before the
// next arm.
class ArmSwitcher {
  public:
    // APPLY and UNDO run commands; a signal must not end one of UNDO. GO_ON: Interrupts::check().
    struct Tools {
        ValueFiles& files;
        Shell apply, undo;
        std::function<Status()> go_on;
    };
    // STORE must have nothing of SUBJECT, and nobody else may write to it.
    ArmSwitcher(Tools tools, LeftStore store, const Subject& subject);

    // For Form::choice, writes the current value first, to check that it can be restored, then each value
    // once. Error: also a file that shows two values alike.
    Status begin();
    // Errors: an external writer changed a file (it stays as found); the kernel stored another value; a
    // command failed, whose undo is still on disk.
    Status to(std::size_t arm);
    Status check();  // for an external writer

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
    Status run_command(const CommandArm& arm);

    const Tools tools_;
    const LeftStore store_;
    std::vector<File> files_;
    std::vector<CommandArm> commands_;
    const CommandArm* in_place_ = nullptr;  // whose undo has to run
};

}  // namespace wq::lab
