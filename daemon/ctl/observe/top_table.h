// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/observe/top_history.h"
#include "ctl/observe/top_rates.h"

namespace wq::ctl {

// How a table is sorted: KEY is one of sort_keys(). Numbers are descending, names ascending; REVERSE inverts
// this.
struct TopOrder {
    std::string key;
    bool reverse = false;
};

// A table as text lines, not wider than the columns given to lay_out().
struct TopTable {
    std::string header;
    std::size_t sorted_at = 0, sorted_width = 0;  // the sort column in the header; width 0: hidden
    std::vector<std::string> rows;
    std::vector<RowKey> keys;  // of the rows
};

// The valid words for --sort, in the order of the columns: of workqueues, or of functions.
std::vector<std::string> sort_keys(bool functions);

// Sorts the rows and lays them out. If there is not enough room, the least important columns are omitted.
TopTable lay_out(std::vector<WorkqueueRow> rows, const TopOrder& order, std::size_t columns);
TopTable lay_out(std::vector<FunctionRow> rows, const TopOrder& order, std::size_t columns);

// The help for the keys and columns of the screen: at most 22 lines of at most 80 characters.
std::vector<std::string> help_lines();

// The meaning of the star after a total.
inline constexpr const char* kResetNote = "* count restarted: its pools were replaced while this ran";

// Returns "1.0 s: 12 workqueues, 3400 items/s, 0.43 CPUs".
std::string summary(const TopInterval& interval);

// VALUE with at most four digits: "0.3", "9999", "12.3k".
std::string count_text(double value);
// Formats nanoseconds: "840ns", "8.4us", "84ms", "840s".
std::string time_text(double ns);

}  // namespace wq::ctl
