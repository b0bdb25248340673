// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/report/report_plot.h"
#include "evidence/verdicts.h"

namespace wq::ctl {

// A comparison that ended, with its readings if they were kept.
struct ReportedComparison {
    VerdictRecord record;
    std::optional<ComparisonReadings> readings;
};

// The evidence of counter number COUNTER after each pair, as the judge computed it.
RunningEvidence running_evidence(const ComparisonReadings& readings, std::size_t counter, double tolerance);

// The verdict as a word with its mark and colour.
std::string verdict_html(const VerdictRecord& record);

// The report sections with the plots of TRIALS and with the table of all TRIALS. TRIALS are oldest first, as
// in the store. Both sections show the latest first and fold all but the last few. history_html()
// returns "" if there are none.
std::string trials_html(const std::vector<ReportedComparison>& trials);
std::string history_html(const std::vector<ReportedComparison>& trials);

}  // namespace wq::ctl
