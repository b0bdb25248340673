// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/installed.h"

namespace wq {

tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config,
                                                         const FactsSource& facts) {
    if (config) return load_policy({*config}, facts);
    auto policy = load_policy(policy_files(root), facts);
    if (policy && !has_main_file(root)) policy->rules.push_back({"*", {}, std::nullopt, {}});
    return policy;
}

}  // namespace wq
