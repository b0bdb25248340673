// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/observe/top_history.h"

namespace wq::ctl {

// A row's history as two graphs, one above the other, in LINES lines of at most COLUMNS characters (ASCII):
// items per second; and the wait from queueing to start, or for a FUNCTION the time from start to end, on a
// logarithmic scale. The right end is now. If there are more intervals than columns, a column shows several
// intervals: their mean rate and the longest of their times.
std::vector<std::string> graph_lines(const std::vector<HistoryPoint>& points, bool function,
                                     std::size_t columns, std::size_t lines);

}  // namespace wq::ctl
