// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"
#include "judge/verdicts.h"
#include "kernel/paths.h"

namespace wq {

// The readings of a comparison: its used pairs, from the first on. The evidence can be computed from them
// again.
//
// Each comparison has its own file, which is only read to show it. The daemon keeps the file of verdicts in
// memory. In that file, the readings of a thousand comparisons would permanently take 1.8 MB with 16 pairs
// each, and 56 MB with 512 pairs; the limit for an idle daemon is 1 MB.
struct ComparisonReadings {
    static constexpr std::size_t kMost = 512;  // pairs

    std::vector<ComparedCounter> counters;
    std::vector<std::vector<PairValues>> pairs;  // each has one element per counter

    // Ignores pairs after the first kMost.
    void add(std::vector<PairValues> pair);
};

// Readings are kept for this many comparisons, the latest ones. Those that were cut off have a separate
// limit.
inline constexpr std::size_t kMostRead = 200;
inline constexpr std::size_t kMostCutOffRead = 50;

// Writes READINGS to a file of its own below PATHS.readings() and removes the oldest files above the limits.
// Writes nothing if there are no pairs. Does not sync: after a crash of the machine the file may be
// missing or broken.
Status keep_readings(const Paths& paths, const VerdictRecord& record, const ComparisonReadings& readings);

// Reads the readings of RECORD. Errors: ENOENT if none were kept; EBADMSG if the file is not valid.
Result<ComparisonReadings> read_readings(const Paths& paths, const VerdictRecord& record);

// As in the file and in `wq-tunectl history --json`: an element per counter.
nlohmann::json to_json(const ComparisonReadings& readings);

}  // namespace wq
