// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ctl/lab/ab_comparison.h"

namespace wq::ctl {

// The result of `wq-tunectl ab`.
struct AbReport {
    struct Row {
        std::string arm;
        std::optional<std::size_t> pools;  // from the plan; empty if the kernel's pods cannot be derived
        std::vector<double> kworkers;      // ab::count_kworkers() after each run
    };
    std::string target;     // what the arms change; "" if it has no name
    std::vector<Row> rows;  // the reference first
    const ab::Comparison& comparison;
    JudgeSettings settings;
    std::string stopped;  // why it ended early; "" if it did not
};

// The name of the counter for wall time, in ns. Any other counter is a number from the command's output.
inline constexpr const char* kTimeCounter = "time";

std::string ab_table(const AbReport& report, std::size_t columns, bool colour);
nlohmann::ordered_json ab_json(const AbReport& report);
// The pairs in the format that `wq-tunectl judge` reads, one `trial` per candidate. If higher values of the
// counter are better, writes the inverse as a cost.
std::string ab_recording(const AbReport& report);
// The results so far in one line: "round 5 of 16; smt 1.2% worse, numa 3% better".
std::string ab_progress(const ab::Comparison& comparison, const std::vector<AbReport::Row>& rows,
                        unsigned max_rounds);

}  // namespace wq::ctl
