// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "targets/engine.h"

namespace wq {

Status Orders::pin(const std::string& name, const std::string& scope) {
    if (const auto found = engine_.look_for_order(name); !found) return tl::unexpected(found.error());
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!engine_.kernel().has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    if (const std::string& why = engine_.inventory().pods_unknown(); !why.empty())
        return fail("pods unknown: " + why, EPERM);
    if (const std::string why = engine_.why_default_stays(name); !why.empty())
        return fail(name + ": " + why, EPERM);
    const Owned* known = engine_.ownership().entry(name);
    const Owned before = known == nullptr ? Owned{} : *known;
    engine_.order(name, Holder::pin, scope);
    engine_.write();
    const auto after = engine_.targets().find(name);
    if (after == engine_.targets().end()) return fail(name + ": vanished", ENOENT);
    if (after->second.state == State::pinned) return {};
    if (Owned* entry = engine_.ownership().entry(name); entry != nullptr)
        entry->hold(before.holder, before.note);
    const std::string reason = after->second.reason;
    engine_.write();
    return fail(name + ": " + reason, EIO);
}

Status Orders::unpin(const std::string& name) {
    engine_.look_at(name);
    const Owned* entry = engine_.ownership().entry(name);
    if (entry == nullptr || !is_order(entry->holder))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    const Owned before = *entry;
    engine_.order(name, Holder::policy);
    engine_.step_all();
    const auto after = engine_.targets().find(name);
    if (after == engine_.targets().end() || after->second.stuck == 0) return {};
    // The baseline was not put back: the order stays in force, so that it can be ended later.
    const std::string reason = after->second.reason;
    engine_.ownership().entry(name)->hold(before.holder, before.note);
    engine_.write();
    return fail(name + ": " + reason, EIO);
}

std::string Orders::note() const {
    const std::string why =
        engine_.policy().default_scope.manage ? engine_.why_default_stays(kDefaultTarget) : "";
    return why.empty() ? "" : fmt::format("{}: not moved meanwhile: {}", kDefaultTarget, why);
}

Status Orders::revert(const std::optional<std::string>& name) {
    const auto& targets = engine_.targets();
    const Ownership& ownership = engine_.ownership();
    std::vector<std::string> names;
    if (name) {
        if (const auto found = engine_.look_for_order(*name); !found) return tl::unexpected(found.error());
        names.push_back(*name);
    } else {
        if (const std::string why = engine_.observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        engine_.look_and_plan();
        // Includes targets without a setting of ours: followers would be planned on their own once @default
        // is held.
        for (const auto& [each, target] : targets)
            if (!target.external && target.now.untouchable.empty()) names.push_back(each);
        // Targets that could not be read since the start get the order, too; it waits until they can be read.
        for (const auto& [each, entry] : ownership.store().entries())
            if (!targets.contains(each)) engine_.order(each, Holder::revert);
    }
    std::vector<std::string> ours;
    for (const std::string& each : names) {
        if (ownership.holds_ours(targets.at(each))) ours.push_back(each);
        engine_.order(each, Holder::revert);
    }
    engine_.step_all();  // @default must not move what was reverted
    reverts_ += static_cast<unsigned>(std::count_if(ours.begin(), ours.end(), [&](const auto& each) {
        const auto after = targets.find(each);
        return after != targets.end() && !ownership.holds_ours(after->second);
    }));
    if (const auto after = name ? targets.find(*name) : targets.end();
        after != targets.end() && ownership.holds_ours(after->second))
        return fail(*name + ": " + after->second.reason, EIO);
    return {};
}

}  // namespace wq
