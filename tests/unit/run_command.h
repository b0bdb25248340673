// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "owned/writer.h"

namespace wq::test {

// Runs a command of wq-tunectl with the arguments WORDS, without its name. Returns the exit code.
inline int run_command(const ctl::SetUp& set_up, std::vector<std::string> words,
                       const ctl::Invocation& invocation = {}) {
    CLI::App app;
    const auto run = set_up(app, invocation);
    std::ranges::reverse(words);
    try {
        app.parse(words);
        return run();
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? ctl::kOk : ctl::kUsage;
    }
}

struct Ran {
    int code = -1;
    std::string out, err;
};
// The exit code of RUN, and what it printed.
template <class Run>
Ran captured(const Run& run) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran out{run(), "", ""};
    std::fflush(stdout);
    out.out = testing::internal::GetCapturedStdout();
    out.err = testing::internal::GetCapturedStderr();
    return out;
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

// TEXT with BY in place of each WHAT.
inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
    return text;
}

// Whether nobody holds the lock under ROOT. Waits 20 s: take_lock() waits 2 s, and on a busy machine a
// guardian needs longer to restore everything.
inline bool is_let_go(const std::string& root) {
    for (int i = 0; i < 10; i++)
        if (take_lock(Paths{root})) return true;
    return false;
}

}  // namespace wq::test
