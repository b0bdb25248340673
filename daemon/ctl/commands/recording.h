// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "evidence/comparison.h"

namespace wq {

// A comparison in a recording (its `trial`).
struct RecordedComparison {
    std::string name;
    std::vector<ComparedCounter> counters;       // lower is better for all of them
    std::vector<std::vector<PairValues>> pairs;  // each has one element per counter
};

// A mistake in a recording. Lines count from 1.
struct RecordingError {
    std::size_t line = 0;
    std::string reason;  // without terminal control characters
};

// Reads CSV: the header `trial,pair,arm,counter,value`, then a line per arm (`baseline` or `candidate`),
// counter, pair and trial, value being a number from Comparison::kLeastValue to kMostValue. Names are text
// without commas and quotes. Trials, pairs and counters keep the order in which the file first names them;
// its lines may be in any order.
tl::expected<std::vector<RecordedComparison>, RecordingError> read_recording(std::string_view text);

}  // namespace wq
