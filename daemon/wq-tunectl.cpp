// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/version.h"
#include "ctl/command.h"
#include "ctl/lab/ab.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "policy/rule_warnings.h"

namespace {

using wq::ctl::Command;

// LINE of a help text for COLUMNS; its second column begins AT.
std::string fitted(const std::string& line, std::size_t columns, std::size_t at) {
    const bool has_second = line.size() > at && line.starts_with("  ") && line[at - 1] == ' ';
    if (line.size() <= columns || !has_second) return wq::ctl::wrapped(line, columns);
    std::string out;
    for (const std::string& part : wq::ctl::wrap(line.substr(at), columns - at))
        out += (out.empty() ? line.substr(0, at) : std::string(at, ' ')) + part + "\n";
    return out;
}

// The text of --help, as wide as the terminal.
struct HelpText : CLI::Formatter {
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
        const std::size_t at = get_column_width();
        const std::size_t columns = std::max(wq::ctl::terminal_columns(), 2 * at);
        std::istringstream lines(Formatter::make_help(app, std::move(name), mode));
        std::string out;
        for (std::string line; std::getline(lines, line);) out += fitted(line, columns, at);
        return out;
    }
    // CLI11 does not know of the words after `--`.
    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string text = Formatter::make_usage(app, std::move(name));
        return app->get_name() != "ab" ? text
                                       : text.insert(text.find_last_not_of('\n') + 1, " -- COMMAND...");
    }
};

// Returns "; did you mean ...?" with a command, or a hint to --help.
std::string nearest_command(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Command& command : wq::ctl::commands()) names.emplace_back(command.name);
    const std::string nearest = wq::suggestion(word, names);
    return nearest.empty() ? "; --help lists them" : nearest;
}

// Returns "; did you mean ...?" with a long option of APPS, or "".
std::string nearest_option(const std::string& word, const std::vector<const CLI::App*>& apps) {
    std::vector<std::string_view> names;
    for (const CLI::App* app : apps)
        for (const CLI::Option* option : app->get_options())
            names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    const std::string nearest = word.starts_with("--") ? wq::nearest_word(word.substr(2), names) : "";
    return nearest.empty() ? "" : fmt::format("; did you mean \"--{}\"?", nearest);
}

// The text of ERROR. Replaces CLI11's texts that only give a number of arguments.
std::string text_of(const CLI::ParseError& error, const std::vector<const CLI::App*>& apps) {
    std::string text = error.what();
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) return text;
    for (const CLI::App* app : apps)
        for (const CLI::Option* option : app->get_options())
            if (option->count() > 1 && option->get_items_expected_max() == 1 &&
                option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw)
                return option->get_name() + " is given twice";
    return text.ends_with(" missing") ? text.substr(0, text.find(':')) + " needs a value" : text;
}

// Prints one line with the error and where to read more. Help and version are not errors.
int usage(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? wq::ctl::kOk : wq::ctl::kFailure;
    const auto given = app.get_subcommands();
    std::vector<const CLI::App*> apps(given.begin(), given.end());
    apps.push_back(&app);
    const std::string help =
        fmt::format("; see wq-tunectl {}--help", given.empty() ? "" : given.front()->get_name() + " ");
    auto words = app.remaining();  // also those of the command, because of fallthrough()
    std::erase(words, "--");
    if (words.empty()) {
        wq::ctl::complain(text_of(error, apps) + help);
    } else if (const std::string& word = words.front(); word.starts_with('-')) {
        const std::string name = word.substr(0, word.find('='));
        const std::string nearest = nearest_option(name, apps);
        wq::ctl::complain(fmt::format("unknown option '{}'{}", name, nearest.empty() ? help : nearest));
    } else if (given.empty()) {
        wq::ctl::complain(fmt::format("unknown command '{}'{}", word, nearest_command(word)));
    } else {
        wq::ctl::complain(fmt::format("unexpected argument '{}'{}", word, help));
    }
    return wq::ctl::kUsage;
}

// Moves a --json before the command behind it: `--json plan` is `plan --json`.
void put_json_last(std::vector<char*>& words) {
    static char status[] = "status";
    auto json = words.end();
    auto at = words.begin() + 1;
    for (; at != words.end() && **at == '-'; ++at) {
        const std::string_view word = *at;
        if (word == "--json") json = at;
        if (word == "--root" && at + 1 != words.end()) ++at;
    }
    if (json == words.end()) return;
    const bool has_command = at != words.end();
    std::rotate(json, json + 1, words.end());
    if (!has_command) words.insert(words.end() - 1, status);
}

int run(int argc, char** argv) {
    wq::ctl::Invocation invocation;
    CLI::App app("Show and control wq-tuned and the kernel's workqueues.", "wq-tunectl");
    app.formatter(std::make_shared<HelpText>());     // the commands inherit it
    app.option_defaults()->disable_flag_override();  // and this: `--json=false` is a mistake
    app.set_version_flag("--version", "wq-tunectl " + std::string(wq::version()));
    app.require_subcommand(0, 1);
    app.add_option("--root", invocation.root, "Use DIR as the root of the file system, for tests")
        ->type_name(wq::ctl::word::kDirectory)
        ->check(CLI::Validator(CLI::ExistingDirectory).description(""));
    bool no_pager = false;
    app.add_flag("--no-pager", no_pager, "No pager for what is longer than the terminal");
    std::map<const CLI::App*, std::pair<const Command*, wq::ctl::CommandRun>> runs;
    for (const Command& command : wq::ctl::commands()) {
        CLI::App* one = app.add_subcommand(command.name, command.help)->fallthrough()->group(command.group);
        runs[one] = {&command, command.set_up(*one, invocation)};
    }
    if (argc > 1 && std::string_view(argv[1]) == "--complete") {
        for (const std::string& line : wq::ctl::complete(app, {argv + 2, argv + argc}))
            fmt::print("{}\n", line);
        return wq::ctl::kOk;
    }
    argc = wq::ctl::cut_command(argc, argv, invocation.command);
    std::vector<char*> words(argv, argv + argc);
    put_json_last(words);
    try {
        app.parse(static_cast<int>(words.size()), words.data());
        const auto given = app.get_subcommands();
        const auto& [command, what] = runs[given.empty() ? app.get_subcommand("status") : given.front()];
        const wq::ctl::Pager pager(command->paged && !no_pager);
        return what();
    } catch (const CLI::ParseError& error) {
        return usage(app, error);
    } catch (const std::exception& error) {
        return wq::ctl::complain(error.what());
    }
}

// Opens /dev/null on closed standard descriptors, because otherwise the next opened file would become stdout.
// stdin is write-only and the others are read-only, so reading and writing still fail, as before.
void fill_closed() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
    fill_closed();
    const int code = run(argc, argv);
    // With kFailure, the error was already printed.
    const int unwritten = std::fflush(stdout) != 0 ? errno : 0;
    if (code == wq::ctl::kFailure || (unwritten == 0 && std::ferror(stdout) == 0)) return code;
    return wq::ctl::complain(
        fmt::format("writing: {}", unwritten != 0 ? std::strerror(unwritten) : "it failed"));
}
