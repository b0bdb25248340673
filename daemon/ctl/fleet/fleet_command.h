// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "ctl/fleet/fleet_merge.h"

namespace wq::ctl {

// A heading for each kind of machine and kernel, and a table of its comparisons.
std::string fleet_show_text(const std::vector<FleetEntry>& entries, std::size_t columns, bool colour);
// A line of JSON for each row. docs/json.md describes it.
std::string fleet_show_json(const std::vector<FleetEntry>& entries);
// The same for `fleet show --worth`: the comparisons whose candidate is in force somewhere, and its effect by
// the pairs since then.
std::string fleet_worth_text(const std::vector<FleetEntry>& entries, std::size_t columns, bool colour);
std::string fleet_worth_json(const std::vector<FleetEntry>& entries);
// The rules that pass at RATE (ctl/fleet/promote.h) as one policy drop-in: a host table for each kind of
// machine that was measured, with the evidence of each rule as comments. If no rule passes, the policy has no
// rules and says so. NOW: s since 1970.
std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now);

// The e-value with the natural logarithm LOG: "0.031", "14.2", "3.0e+12". It may be too large for a double.
std::string e_text(double log);
// How hosts differ: the deviation between them, and how many are better or worse by their own evidence:
// "0.35%; 12 better, 0 worse"; "MIXED: 2.10%; 40 better, 35 worse" if both are more than 5% of the hosts and
// more than one host; "not known" if a merged line lacks these numbers.
std::string spread_text(const Pooled& pooled);
// Returns "1,234,567" for 1234567.
std::string count_text(std::uint64_t count);

}  // namespace wq::ctl
