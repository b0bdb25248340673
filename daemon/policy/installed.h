// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "policy/load_policy.h"

namespace wq {

// Loads the policy for a host with FACTS: from CONFIG if given, else the installed files below ROOT. If
// there is no main file at all (a masked one counts), uses the content of the shipped file: `auto` for every
// workqueue. Rules that have expired are marked.
tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts);

}  // namespace wq
