// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/fleet_merge.h"

namespace wq::ctl {

// The rules that pass at RATE (evidence/promote.h) as one policy drop-in: a host table for each kind of
// machine that was measured, with the evidence of each rule as comments. If no rule passes, the policy has no
// rules and says so. NOW: s since 1970.
std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now);

}  // namespace wq::ctl
