// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ctl/lab/bench_result.h"

namespace wq::bench {

// The result as a page for a browser, like that of `wq-tunectl report`; it loads no other files. MACHINE:
// HTML of the machine's drawing. The page does not contain the host's name.
std::string bench_page(const BenchResult& result, const std::string& machine);

// The figures of each scope, the finding, the host and the settings, ready to be pasted.
std::string bench_table(const BenchResult& result, std::size_t columns, bool colour);
// One table of several results, each with the name of its file.
std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour);

// The result in one sentence.
std::string finding(const BenchResult& result);
// "Intel Xeon E5, 8 CPUs, 8 cores, 8 LLCs of 1 core, virtual, kernel 6.12.107".
std::string host_text(const Host& host);
std::string settings_text(const BenchResult& result);
// "14% better (10 to 18), improved"; "reference" for the first row.
std::string effect_text(const BenchResult& result, const Row& row);
// The headings of a row's figures, and the figures: pools, kworkers, items/s, MB/s, us of p50, p90, p99, CPU.
std::vector<std::string> figure_names();
std::vector<std::string> figure_texts(const Row& row);

}  // namespace wq::bench
