// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "judge/trial.h"

namespace wq {

// A trial that was written down.
struct RecordedTrial {
    std::string name;
    std::vector<JudgedCounter> counters;       // all of them costs
    std::vector<std::vector<Readings>> pairs;  // each with one of every counter
};

// A mistake in a recording. Lines count from 1.
struct RecordingError {
    std::size_t line = 0;
    std::string reason;  // holds nothing that a terminal would obey
};

// Reads CSV: the header `trial,pair,arm,counter,value`, then a line per arm (`baseline` or `candidate`),
// counter, pair and trial, value being a number from Comparison::kLeastValue to kMostValue. Names are text
// without commas and quotes. Trials, pairs and counters keep the order in which the file first names them;
// its lines may be in any order.
tl::expected<std::vector<RecordedTrial>, RecordingError> read_recording(std::string_view text);

}  // namespace wq
