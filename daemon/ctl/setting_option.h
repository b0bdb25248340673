// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "model/result.h"

namespace wq::ctl {

// An option whose word PARSE reads into OUT; its error is a wrong argument.
template <class T>
void add_setting(CLI::App& command, const char* name, const char* text, Result<T> (*parse)(std::string_view),
                 T& out) {
    const auto take = [=, &out](const std::string& word) {
        const auto value = parse(word);
        if (!value) throw CLI::ValidationError(name, value.error().text);
        out = *value;
    };
    command.add_option_function<std::string>(name, take, text);
}

}  // namespace wq::ctl
