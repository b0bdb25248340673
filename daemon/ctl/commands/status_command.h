// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "ctl/options.h"

namespace wq::ctl {

// The daemon's status as JSON. Error: ESRCH if no daemon runs or the system bus cannot be reached; others as
// in call_daemon().
Result<std::string> ask_daemon(const Options& options);

}  // namespace wq::ctl
