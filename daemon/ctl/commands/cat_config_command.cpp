// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "policy/load_policy.h"
#include "policy/policy_text.h"

namespace wq::ctl {

int cat_config(const Options& options) {
    const auto files = options.config ? std::vector{*options.config} : policy_files(options.root);
    const auto policy = load_installed_policy(options.root, options.config, facts_of(options));
    if (!policy) {
        print_errors(policy.error());
        return kFailure;
    }
    if (options.json)
        fmt::print("{}\n", json_text(policy_json(*policy, files), 2));
    else
        fmt::print("{}", policy_toml(*policy, files));
    return kOk;
}

}  // namespace wq::ctl
