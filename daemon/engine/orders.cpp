// SPDX-License-Identifier: LGPL-2.1-or-later
// An operator's orders. They stand in the baseline entry of their target, so that they outlive a restart.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/engine.h"
#include "model/lacks_scopes.h"

namespace wq {

Result<Target*> Tuner::find_for_order(const std::string& name) {
    if (const std::string lacks = lacks_scopes(kernel_); !lacks.empty())
        return fail(name + ": " + lacks, EOPNOTSUPP);
    refresh_target(name, edges_.files.unbound_mask());
    const auto found = targets_.find(name);
    if (found == targets_.end()) return fail(name + ": no such target", ENOENT);
    Target& target = found->second;
    if (!target.now.untouchable.empty()) return fail(name + ": " + target.now.untouchable, EPERM);
    if (target.external)
        return fail(
            fmt::format("{}: external: holds '{}', which an external writer wrote; put it back and reload",
                        name, target.now.scope.word),
            EPERM);
    if (const std::string why = observing(); !why.empty())
        return fail(fmt::format("{}: nothing is written while observing: {}", name, why), EPERM);
    return &target;
}

Status Tuner::pin(const std::string& name, const std::string& scope) {
    const auto found = find_for_order(name);
    if (!found) return tl::unexpected(found.error());
    Target& target = **found;
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!kernel_.has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    if (!pods_unknown_.empty()) return fail("pods unknown: " + pods_unknown_, EPERM);
    if (target.refuses(scope)) target.refused->word.clear();
    target.on_trial = false;
    const BaselineEntry* known = edges_.store.find(name);
    const std::string before = known == nullptr ? "" : known->order;
    entry_for(target.now).order = kPin + scope;
    apply_wishes();
    const auto after = targets_.find(name);
    if (after == targets_.end()) return fail(name + ": vanished", ENOENT);
    if (after->second.state == State::pinned) return {};
    if (BaselineEntry* entry = edges_.store.find(name); entry != nullptr) entry->order = before;
    const std::string reason = after->second.reason;
    apply_wishes();
    return fail(name + ": " + reason, EIO);
}

Status Tuner::unpin(const std::string& name) {
    refresh_target(name, edges_.files.unbound_mask());
    BaselineEntry* entry = edges_.store.find(name);
    if (!pinned_scope(entry) && !is_reverted(entry))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    const std::string order = std::exchange(entry->order, "");
    if (const auto found = targets_.find(name); found != targets_.end()) found->second.stuck = 0;
    apply_wishes();
    const auto after = targets_.find(name);
    if (after == targets_.end() || after->second.stuck == 0) return {};
    // Not put back: the order stands, and can be tried again.
    const std::string reason = after->second.reason;
    edges_.store.find(name)->order = order;
    apply_wishes();
    return fail(name + ": " + reason, EIO);
}

Status Tuner::revert(const std::optional<std::string>& name) {
    std::vector<std::string> names;
    if (name) {
        if (const auto found = find_for_order(*name); !found) return tl::unexpected(found.error());
        names.push_back(*name);
    } else {
        if (const std::string why = observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        refresh_targets();
        plan_targets();
        // Also what holds no setting of ours: a follower would be planned for itself once @default is held.
        for (const auto& [each, target] : targets_)
            if (!target.external && target.now.untouchable.empty()) names.push_back(each);
        // What could not be read yet since the start waits for that with its order.
        for (const auto& [each, entry] : edges_.store.entries())
            if (!targets_.contains(each)) edges_.store.find(each)->order = kRevert;
    }
    std::vector<std::string> ours;
    for (const std::string& each : names) {
        if (holds_ours(targets_.at(each))) ours.push_back(each);
        entry_for(targets_.at(each).now).order = kRevert;
        targets_.at(each).on_trial = false;
        targets_.at(each).stuck = 0;
    }
    apply_wishes();
    order_reverts_ += static_cast<unsigned>(std::count_if(ours.begin(), ours.end(), [&](const auto& each) {
        const auto after = targets_.find(each);
        return after != targets_.end() && !holds_ours(after->second);
    }));
    if (const auto after = name ? targets_.find(*name) : targets_.end();
        after != targets_.end() && holds_ours(after->second))
        return fail(*name + ": " + after->second.reason, EIO);
    return {};
}

}  // namespace wq
