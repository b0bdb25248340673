// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "ctl/bench/bench_result.h"

namespace wq::bench {

// The result as a page for a browser, like that of `wq-tunectl report`; it loads no other files. MACHINE:
// HTML of the machine's drawing. The page does not contain the host's name.
std::string bench_page(const BenchResult& result, const std::string& machine);

}  // namespace wq::bench
