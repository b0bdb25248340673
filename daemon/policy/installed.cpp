// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/installed.h"

namespace wq {

tl::expected<Policy, PolicyErrors> load_installed_policy(const std::string& root,
                                                         const std::optional<std::string>& config) {
    const auto files = config ? std::vector{*config} : policy_files(root);
    if (!files.empty()) return load_policy(files);
    Policy policy;
    policy.rules.push_back({"*", {}, std::nullopt, {}});
    return policy;
}

}  // namespace wq
