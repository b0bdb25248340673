// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "policy/load_policy.h"

namespace wq {

// For the host with these FACTS: the policy of CONFIG, where given, else the installed one below ROOT. Where
// there is no main file at all (a masked one is one), what the shipped file says: every workqueue, `auto`.
tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts);

}  // namespace wq
