// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/result.h"
#include "ctl/observe/top_rates.h"

namespace wq::ctl {

// A recording is the output of `top --json --functions`: a line for each interval.

struct RecordedInterval {
    TopInterval interval;
    std::int64_t time = 0;  // its end, in seconds since 1970
    std::string limits;     // what the kernel did not show
    bool has_functions = false;
};

// The inverse of interval_json(). Restores what a table or interval_json() shows of the interval.
// RESET_BEFORE: ids of workqueues that were reset in earlier intervals; those of this interval are added.
// Error: LINE is not such a line.
Result<RecordedInterval> interval_of(const nlohmann::json& line, std::set<unsigned>& reset_before);

// Writes a recording. Each line is in the file once add() returns.
class TopRecorder {
  public:
    // Opens the file PATH. The first add() truncates it, so a start that fails keeps an older recording.
    static Result<TopRecorder> open(const std::string& path);
    Status add(const std::string& line);

  private:
    TopRecorder(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
    std::string path_;
    Fd file_;
    bool emptied_ = false;
};

// Reads a recording.
class TopRecording {
  public:
    static Result<TopRecording> open(const std::string& path);
    // The next interval; empty at the end, and for a last line that was cut off. Error: a line is not valid,
    // or the file is empty or cannot be read.
    Result<std::optional<RecordedInterval>> next();
    // Whether the last line was cut off.
    [[nodiscard]] bool cut_off() const { return cut_off_; }

  private:
    TopRecording(std::string path, std::ifstream file) : path_(std::move(path)), file_(std::move(file)) {}
    std::string path_;
    std::ifstream file_;
    unsigned line_ = 0;
    bool cut_off_ = false;
    std::set<unsigned> reset_;
};

}  // namespace wq::ctl
