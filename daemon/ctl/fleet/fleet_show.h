// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/fleet_line.h"
#include "evidence/fleet_merge.h"

namespace wq::ctl {

// A heading for each kind of machine and kernel, and a table of its comparisons.
std::string fleet_show_text(const std::vector<FleetEntry>& entries, std::size_t columns, bool colour);
// A line of JSON for each row. docs/json.md describes it.
std::string fleet_show_json(const std::vector<FleetEntry>& entries);

// Follows the scope in the name of an arm whose affinity is strict.
inline constexpr std::string_view kStrictSuffix = " strict";

// The e-value with the natural logarithm LOG: "0.031", "14.2", "3.0e+12". It may be too large for a double.
std::string e_text(double log);
// "AMD EPYC 9654, x86_64, 96 cores, 8 per LLC, 2 packages"; unknown parts are left out.
std::string machine_text(const FleetMachine& machine);
// "cache -> smt strict", or "smt (policy) -> cpu" if a policy had set the reference.
std::string arms_text(const FleetKey& key);
// "2.3% better".
std::string effect_text(const Pooled& pooled);
// How hosts differ: the deviation between them, and how many are better or worse by their own evidence:
// "0.35%; 12 better, 0 worse"; "MIXED: 2.10%; 40 better, 35 worse" if both are more than 5% of the hosts and
// more than one host; "not known" if a merged line lacks these numbers.
std::string spread_text(const Pooled& pooled);
// Returns "1,234,567" for 1234567.
std::string count_text(std::uint64_t count);

}  // namespace wq::ctl
