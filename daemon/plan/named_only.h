// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <set>
#include <string>

#include "kernel/paths.h"
#include "model/policy.h"
#include "model/workqueue.h"

namespace wq {

// Targets that are left unless a rule names them.
struct NamedOnly {
    std::string host = {};            // a realtime kernel, isolated CPUs: all targets; "" if neither
    std::set<std::string> swap = {};  // swap_devices(): the targets that serve them

    // Why TARGET is left; "" if it is not.
    [[nodiscard]] std::string why(const Policy& policy, const Workqueue& target) const;
};

NamedOnly read_named_only(const Paths& paths);

// Whether a rule names TARGET. The pattern "*" matches every name and does not count.
bool is_named(const Policy& policy, const Workqueue& target);

}  // namespace wq
