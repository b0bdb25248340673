// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/lab/bench_run.h"

namespace wq::ctl {

struct BenchOptions {
    bench::Settings settings;
    std::optional<unsigned> writers;   // a quarter of the CPUs if not given
    std::string save;                  // file for --compare; "" = none
    std::string page;                  // file for a browser; "" = none
    std::vector<std::string> compare;  // saved files: nothing is run
    bool restore = false;              // only restore and remove what an earlier run left
    bool json = false;
};

// `wq-tunectl bench`: compares the scopes on a dm-crypt device of its own.
int bench(const BenchOptions& options, const bench::Tools& tools);

}  // namespace wq::ctl
