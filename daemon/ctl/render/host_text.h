// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace wq::ctl {

// Prints what `status` says of the host beside its targets: the kernel's features; and, where CPUs are set
// apart, which, and what ran on them. Of a status without these keys (an older daemon's), nothing.
void print_host(const nlohmann::json& status);

}  // namespace wq::ctl
