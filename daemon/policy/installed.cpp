// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/installed.h"

#include "base/clock.h"

namespace wq {

tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts) {
    auto policy = load_policy(config ? std::vector{*config} : policy_files(root), facts);
    if (policy && !config && !has_main_file(root)) policy->rules.push_back({{"*"}, {}, {}, {}});
    if (policy) policy->expire(wall_clock());
    return policy;
}

}  // namespace wq
