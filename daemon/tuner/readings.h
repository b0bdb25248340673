// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "judge/trial.h"
#include "kernel/paths.h"
#include "model/result.h"
#include "tuner/verdicts.h"

namespace wq {

// What a trial read: its used pairs, from the first on, which is what its evidence can be made of again.
//
// They are in a file per trial, read only by who shows them. Kept in the verdicts' own file, those of a
// thousand trials of 512 pairs would take 16 MB of the daemon's memory per counter, all the time.
struct TrialReadings {
    static constexpr std::size_t kMost = 512;  // pairs

    std::vector<JudgedCounter> counters;
    std::vector<std::vector<Readings>> pairs;  // each with one of every counter

    // Takes no more than the first kMost.
    void add(const WindowPair& pair);
};

// Readings are kept of so many trials, the last ones.
inline constexpr std::size_t kMostTrialsRead = 200;

// Below PATHS.readings(), in a file of its own name; the oldest ones give way. A trial without a pair leaves
// nothing.
Status keep_readings(const Paths& paths, const VerdictRecord& record, const TrialReadings& readings);

// Those of RECORD's trial. Errors: ENOENT where none were kept; a file that is not one of ours.
Result<TrialReadings> read_readings(const Paths& paths, const VerdictRecord& record);

// As in the file and in `wq-tunectl history --json`: an element per counter.
nlohmann::json to_json(const TrialReadings& readings);

}  // namespace wq
