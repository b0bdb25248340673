// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ctl/options.h"

namespace wq::ctl {

// Parts of the command line that are not a command's own options.
struct Invocation {
    std::string root;                  // --root
    std::vector<std::string> command;  // the words after `--`, for `ab` to run
};

// Runs a command after its options were parsed; returns its exit code. A CLI::ValidationError is a wrong
// argument.
using CommandRun = std::function<int()>;
// Adds the options to COMMAND. INVOCATION outlives the result and is complete when the result is called.
using SetUp = std::function<CommandRun(CLI::App& command, const Invocation& invocation)>;

// A command of wq-tunectl. --help and the completions come from this table; tests/manuals.sh compares the
// manuals with it.
struct Command {
    const char* group;  // in --help
    const char* name;
    const char* help;
    SetUp set_up;
    bool paged = false;  // on a terminal its output goes through a pager
};
std::span<const Command> commands();

// The commands with options of their own.
CommandRun set_up_ab(CLI::App& command, const Invocation& invocation);
CommandRun set_up_bench(CLI::App& command, const Invocation& invocation);
CommandRun set_up_diagnose(CLI::App& command, const Invocation& invocation);
CommandRun set_up_dump(CLI::App& command, const Invocation& invocation);
CommandRun set_up_fleet(CLI::App& command, const Invocation& invocation);
CommandRun set_up_judge(CLI::App& command, const Invocation& invocation);
CommandRun set_up_top(CLI::App& command, const Invocation& invocation);

// The kind of word that an option or argument takes, used as type_name() for --help and the completions.
namespace word {
inline constexpr const char* kScope = "SCOPE";
inline constexpr const char* kScopes = "SCOPE,...";
inline constexpr const char* kTarget = "TARGET";
inline constexpr const char* kWorkqueue = "WORKQUEUE";
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kDirectory = "DIR";
inline constexpr const char* kSource = "SOURCE";  // of a topology
inline constexpr const char* kColumn = "COLUMN";  // of `top`
inline constexpr const char* kMetric = "METRIC";
inline constexpr const char* kNumber = "N";
inline constexpr const char* kFleetAction = "merge|show|policy";
inline constexpr const char* kLoad = "write|read|both";  // of `bench`
}  // namespace word

// Completions for the last of WORDS, which follow the program's name; APP has all commands. Each is "WORD"
// or "WORD<tab>HELP". A line that starts with ':' is an instruction for the shell:
//   :file P     files, after the prefix P; `:dir P` directories
//   :command    a command of the system
//   :nospace    the word is not complete yet
std::vector<std::string> complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace wq::ctl
