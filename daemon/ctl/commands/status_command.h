// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "ctl/options.h"

namespace wq::ctl {

// The daemon's status as JSON. Error: ESRCH if no daemon runs or it cannot be asked.
Result<std::string> ask_daemon(const Options& options);

}  // namespace wq::ctl
