// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ctl/observe/top_rates.h"

namespace wq::ctl {

// How a table is sorted: KEY is one of sort_keys(). Numbers are descending, names ascending; REVERSE inverts
// this.
struct TopOrder {
    std::string key;
    bool reverse = false;
};

struct TopOptions {
    std::vector<std::string> names;  // workqueues, as in sysfs; empty: all
    double interval = 1;             // seconds
    std::optional<unsigned> iterations;
    bool json = false;
    bool once = false;
    bool functions = false;
    std::string record, replay;  // files; "": none
    TopOrder order;              // empty key: "rate", for functions "busy"
};

// A table as text lines, not wider than the columns given to lay_out().
struct TopTable {
    std::string header;
    std::vector<std::string> rows;
};

// The valid words for --sort, in the order of the columns: of workqueues, or of functions.
std::vector<std::string> sort_keys(bool functions);

// Sorts the rows and lays them out. If there is not enough room, the least important columns are omitted.
TopTable lay_out(std::vector<WorkqueueRow> rows, const TopOrder& order, std::size_t columns);
TopTable lay_out(std::vector<FunctionRow> rows, const TopOrder& order, std::size_t columns);

// The help for the keys and columns of the screen: at most 22 lines of at most 80 characters.
std::vector<std::string> help_lines();

// Returns "1.0 s: 12 workqueues, 3400 items/s, 0.43 CPUs".
std::string summary(const TopInterval& interval);
// One interval as text, COLUMNS wide. Idle workqueues are only counted, unless OPTIONS name workqueues.
std::string interval_text(const TopInterval& interval, const TopOptions& options, std::size_t columns);

struct RecordedInterval {
    TopInterval interval;
    std::int64_t time = 0;  // its end, in seconds since 1970
    std::string limits;     // what the kernel did not show
    bool has_functions = false;
};

// One interval in the format of `top --json`, with FUNCTIONS also that of a recording.
nlohmann::ordered_json interval_json(const RecordedInterval& one, bool functions);
// The inverse. Restores what a table or interval_json() shows of the interval. Error: LINE is not such a
// line.
Result<RecordedInterval> interval_of(const nlohmann::ordered_json& line);

}  // namespace wq::ctl
