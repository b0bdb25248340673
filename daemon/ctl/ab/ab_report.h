// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ctl/ab/ab_comparison.h"

namespace wq::ctl {

// What `wq-tunectl ab` found.
struct AbReport {
    struct Row {
        std::string arm;
        std::optional<std::size_t> pools;  // of the plan; empty where the kernel's pods cannot be derived
        std::vector<double> kworkers;      // ab::count_kworkers() after each run
    };
    std::string target;     // what the arms change; "" if it has no name
    std::vector<Row> rows;  // the baseline first
    const ab::Comparison& comparison;
    JudgeSettings settings;
    std::string stopped;  // why it ended before its time; "" where it did not
};

// The name of the counter that is the wall time, in ns; another one is a number out of the command's output.
inline constexpr const char* kTimeCounter = "time";

std::string ab_table(const AbReport& report, std::size_t columns, bool colour);
nlohmann::ordered_json ab_json(const AbReport& report);
// Its pairs as `wq-tunectl judge` reads them, a trial per candidate. More of a counter for which more is
// better becomes a cost by its inverse.
std::string ab_recording(const AbReport& report);
// How the candidates stand, in one line: "round 5 of 16; smt +1.2%, numa -3.0%".
std::string ab_progress(const ab::Comparison& comparison, const std::vector<AbReport::Row>& rows,
                        unsigned max_rounds);

}  // namespace wq::ctl
