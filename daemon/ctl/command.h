// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ctl/options.h"

namespace wq::ctl {

// What stands around a command's own words.
struct Invocation {
    std::string root;                  // --root
    std::vector<std::string> command;  // what follows `--`, for `ab` to run
};

// What a command does once its options are read; its exit code. A CLI::ValidationError is a wrong argument.
using CommandRun = std::function<int()>;

// A command of wq-tunectl. --help and the completions come from this table; a test compares the manual with
// it.
struct Command {
    const char* name;
    const char* help;
    // Adds the options to COMMAND. INVOCATION, which outlives the result, is complete when that is called.
    CommandRun (*set_up)(CLI::App& command, const Invocation& invocation);
    bool paged = false;  // on a terminal its output goes through a pager
};
std::span<const Command> commands();

// What kind of word an option or an argument takes, for --help and for the completions: its type_name().
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
}  // namespace word

// What a shell may put in place of the last of WORDS, which follow the program's name; APP has all commands.
// Each is "WORD", or "WORD<tab>HELP"; a line that begins with ':' tells the shell what to do:
//   :file P     files, after the prefix P; `:dir P` directories
//   :command    a command of the system's
//   :nospace    more of the word is to come
std::vector<std::string> complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace wq::ctl
