// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/named_only.h"

#include "base/file.h"
#include "kernel/read_isolation.h"
#include "kernel/read_swap.h"

namespace wq {

bool is_named(const Policy& policy, const Workqueue& target) {
    if (target.kind == Kind::default_scope) return !policy.default_scope.origin.file.empty();
    const WorkqueueRule* rule = policy.rule_for(target.name);
    return rule != nullptr && rule->names(target.name);
}

std::string NamedOnly::why(const Policy& policy, const Workqueue& target) const {
    std::string out;
    if (!host.empty())
        out = host + ": only targets that a rule names are written or compared";
    else if (serves_swap(target.name, swap))
        out = "it serves swap: written or compared only if a rule names it";
    return out.empty() || is_named(policy, target) ? "" : out;
}

NamedOnly read_named_only(const Paths& paths) {
    const Isolation isolation = read_isolation(paths);
    return {read_first_line(paths.realtime()) == "1" ? "a realtime kernel"
            : !isolation.isolcpus.empty()            ? "isolcpus= is set"
            : !isolation.nohz_full.empty()           ? "nohz_full= is set"
                                                     : "",
            swap_devices(paths)};
}

}  // namespace wq
