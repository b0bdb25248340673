// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/journal.h"
#include "policy/load_policy.h"
#include "policy/policy.h"

namespace wq {

// The policy for this host. ROOT, CONFIG: as in ServiceOptions.
tl::expected<Policy, PolicyErrors> load_host_policy(const std::string& root,
                                                    const std::optional<std::string>& config);
// Logs the first ten errors and the number of the others.
void log_policy_errors(Log& log, const PolicyErrors& errors);

}  // namespace wq
