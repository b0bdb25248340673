// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/top/top_rates.h"

namespace wq::ctl {

// How a table is sorted: KEY is one of sort_keys(). Numbers go down from the highest, names up; REVERSE turns
// it.
struct TopOrder {
    std::string key;
    bool reverse = false;
};

// A table in lines of at most so many columns as it was made for.
struct TopTable {
    std::string header;
    std::size_t sorted_at = 0, sorted_width = 0;  // where in the header the column of the order is; width 0:
                                                  // it has no room
    std::vector<std::string> rows;
};

// The words that --sort takes, in the order of the columns: of workqueues, or of functions.
std::vector<std::string> sort_keys(bool functions);

// Sorts the rows, and lays them out: the most important columns first in what room there is.
TopTable lay_out(std::vector<WorkqueueRow> rows, const TopOrder& order, std::size_t columns);
TopTable lay_out(std::vector<FunctionRow> rows, const TopOrder& order, std::size_t columns);

// What the star behind a total means.
inline constexpr const char* kResetNote = "* begun anew: its pools were set while this ran";

// "1.0 s: 12 workqueues, 3400 items/s, 0.43 CPUs".
std::string summary(const TopInterval& interval);

// Four digits at most: "0.3", "9999", "12.3k".
std::string count_text(double value);
// Nanoseconds: "840ns", "8.4us", "84ms", "840s".
std::string time_text(double ns);

}  // namespace wq::ctl
