// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "ctl/command.h"
#include "policy/quantity.h"

namespace wq::ctl {

// Checks for CLI11: the reason why a word is wrong, or "".
// Rejects an empty name. A script with an unset variable must not get "all" or anything else.
inline std::string not_empty(const std::string& word) {
    return word.empty() ? "it is empty" : "";
}
// Rejects leading zeros, because CLI11 parses 010 as eight.
inline std::string decimal(const std::string& word) {
    return word.size() > 1 && word.front() == '0' ? "not a decimal number: " + word : "";
}

// Adds an option or argument that takes a word of KIND (ctl/command.h), or several.
template <class T>
CLI::Option* add_word(CLI::App& command, const char* name, T& out, const char* kind, const char* help) {
    return command.add_option(name, out, help)->type_name(kind)->check(not_empty);
}
// Makes OPTION take a whole number from LEAST to MOST and shows the range in --help.
template <class T>
CLI::Option* take_number(CLI::Option* option, T least, T most) {
    return option->type_name(fmt::format("N ({} to {})", least, most))
        ->check(decimal)
        ->check(CLI::Range(least, most).description(""));
}

// Makes OPTION take a number of seconds from LEAST to MOST.
inline CLI::Option* take_seconds(CLI::Option* option, double least, double most) {
    return option->type_name(word::kNumber)->check([=](const std::string& word) -> std::string {
        double seconds = 0;
        if (CLI::detail::lexical_cast(word, seconds) && seconds >= least && seconds <= most) return "";
        return fmt::format("'{}' is not a number of seconds from {} to {}", word, least, most);
    });
}

// The help of --json.
inline constexpr const char* kJsonHelp = "Print JSON, for scripts";

// Adds an option whose word PARSE converts to OUT. An error of PARSE is a wrong argument.
template <class T, class Out>
CLI::Option* add_setting(CLI::App& command, const char* name, const char* text,
                         Result<T> (*parse)(std::string_view), Out& out) {
    const auto take = [=, &out](const std::string& word) {
        const auto value = parse(word);
        if (!value) throw CLI::ValidationError(name, value.error().text);
        out = *value;
    };
    return command.add_option_function<std::string>(name, take, text)->type_name("N");
}

// Relates pairs of options of COMMAND by HOW: CLI::Option::needs or excludes.
inline void relate(CLI::App& command, CLI::Option* (CLI::Option::*how)(CLI::Option*),
                   std::initializer_list<std::pair<const char*, const char*>> pairs) {
    for (const auto& [name, other] : pairs) (command.get_option(name)->*how)(command.get_option(other));
}
// Throws a ValidationError if COMMAND was given other options beside NAME.
inline void only_option(const CLI::App& command, const std::string& name) {
    for (const CLI::Option* other : command.get_options())
        if (other->count() > 0 && other->get_name() != name)
            throw CLI::ValidationError(name, "it cannot be used with " + other->get_name());
}

}  // namespace wq::ctl
