// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wq::ctl {

// Prints the part of `status` about the host: the kernel's features, and isolated CPUs with the work that
// ran on them. Prints nothing for a status without these keys (from an older daemon).
void print_host(const nlohmann::json& status);

// The CPUs of ISOLATION, a part of `status --json`, as a table; "" if none is isolated.
std::string isolated_cpus_text(const nlohmann::json& isolation);

}  // namespace wq::ctl
