// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "evidence/verdicts.h"

namespace wq::ctl {

// Returns the record of the last comparison of TARGET that ended at SINCE (s since 1970) or later, from the
// store at PATH. The daemon writes the record after the end of the comparison, and a slow disk can delay it.
// Waits up to LIMIT. Error: there is no record by then, or the store cannot be read.
Result<VerdictRecord> wait_for_verdict(const std::string& path, const std::string& target, std::int64_t since,
                                       std::chrono::milliseconds limit);

}  // namespace wq::ctl
