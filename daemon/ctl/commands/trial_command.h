// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "judge/verdicts.h"

namespace wq::ctl {

// The record of the last trial of TARGET that ended at SINCE (s since 1970) or later, from the store at PATH.
// The daemon writes it after the trial's end, when its disk answers: it is waited for, at most LIMIT. Error:
// it did not come, or the store cannot be read.
Result<VerdictRecord> wait_for_verdict(const std::string& path, const std::string& target, std::int64_t since,
                                       std::chrono::milliseconds limit);

}  // namespace wq::ctl
