// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/trial.h"
#include "judge/verdicts.h"
#include "kernel/paths.h"

namespace wq {

// What a trial read: its used pairs, from the first on, which is what its evidence can be made of again.
//
// They are in a file per trial, read only by who shows them. In the verdicts' own file, which the daemon has
// in memory, those of a thousand trials of 16 pairs would cost it 1.8 MB for good, and of 512 pairs 56 MB; an
// idle daemon may have one.
struct TrialReadings {
    static constexpr std::size_t kMost = 512;  // pairs

    std::vector<JudgedCounter> counters;
    std::vector<std::vector<Readings>> pairs;  // each with one of every counter

    // Takes no more than the first kMost.
    void add(std::vector<Readings> pair);
};

// Readings are kept of so many trials, the last ones; those that were cut off do not count, and have a place
// of their own.
inline constexpr std::size_t kMostTrialsRead = 200;
inline constexpr std::size_t kMostCutOffRead = 50;

// Below PATHS.readings(), in a file of its own name; older ones of the same kind give way. A trial without a
// pair leaves nothing. Does not wait for the disk: after a crash of the machine the file may be absent or
// broken.
Status keep_readings(const Paths& paths, const VerdictRecord& record, const TrialReadings& readings);

// Those of RECORD's trial. Errors: ENOENT where none were kept; a file that is not one of ours.
Result<TrialReadings> read_readings(const Paths& paths, const VerdictRecord& record);

// As in the file and in `wq-tunectl history --json`: an element per counter.
nlohmann::json to_json(const TrialReadings& readings);

}  // namespace wq
