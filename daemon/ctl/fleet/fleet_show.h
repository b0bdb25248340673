// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "evidence/fleet_merge.h"

namespace wq::ctl {

// A heading for each kind of machine and kernel, and a table of its comparisons.
std::string fleet_show_text(const std::vector<FleetEntry>& entries, std::size_t columns, bool colour);
// A line of JSON for each row. docs/json.md describes it.
std::string fleet_show_json(const std::vector<FleetEntry>& entries);

}  // namespace wq::ctl
