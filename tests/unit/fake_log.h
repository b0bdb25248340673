// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <vector>

#include "base/journal.h"
#include "state/state_file.h"

namespace wq {

// Runs the work before put() returns.
class WriteAtOnce : public RecordWriter {
  public:
    void put(const std::string& /*name*/, Work work, Done done) override { done(work()); }
};

}  // namespace wq

namespace wq::test {

// Keeps the log lines.
class FakeLog : public Log {
  public:
    void write(const LogLine& line) override { lines.push_back(line); }

    [[nodiscard]] std::size_t count(Event event) const {
        return static_cast<std::size_t>(
            std::count_if(lines.begin(), lines.end(), [&](const LogLine& l) { return l.event == event; }));
    }
    // Number of lines with this priority or a more severe one.
    [[nodiscard]] std::size_t at_least(int priority) const {
        return static_cast<std::size_t>(std::count_if(
            lines.begin(), lines.end(), [&](const LogLine& l) { return l.priority <= priority; }));
    }

    std::vector<LogLine> lines;
};

}  // namespace wq::test
