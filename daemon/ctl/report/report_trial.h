// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/report/report_plot.h"
#include "judge/readings.h"
#include "judge/verdicts.h"

namespace wq::ctl {

// A trial that ended, with what was read where that was kept.
struct ReportTrial {
    VerdictRecord record;
    std::optional<TrialReadings> readings;
};

// The evidence of counter number COUNTER after each pair, as the judge had it.
RunningEvidence running_evidence(const TrialReadings& readings, std::size_t counter, double tolerance);

// The verdict as a word with its mark and colour.
std::string verdict_html(const VerdictRecord& record);

// The sections with the plots of TRIALS (oldest first, as the store has them) and with the table of them all;
// both show the last first, and fold what is older than the last few. Without trials there is no table.
std::string trials_html(const std::vector<ReportTrial>& trials);
std::string history_html(const std::vector<ReportTrial>& trials);

}  // namespace wq::ctl
