// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include "ctl/machine.h"
#include "policy/installed.h"
#include "policy/policy_text.h"

namespace wq::ctl {

int cat_config(const Options& options) {
    const auto files = options.config ? std::vector{*options.config} : policy_files(options.root);
    const auto policy = load_installed_policy(options.root, options.config, facts_of(options));
    if (!policy) {
        print_errors(policy.error());
        return kFailure;
    }
    using Json = nlohmann::ordered_json;
    if (options.json)  // a file name may contain any bytes, but JSON is UTF-8
        fmt::print("{}\n", policy_json(*policy, files).dump(2, ' ', false, Json::error_handler_t::replace));
    else
        fmt::print("{}", policy_toml(*policy, files));
    return kOk;
}

}  // namespace wq::ctl
