// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/orders.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <vector>

#include "targets/gate.h"

namespace wq {

std::string Orders::note() const {
    if (!targets_.policy().default_scope.manage || targets_.default_stays().empty()) return "";
    return fmt::format("{}: not moved meanwhile: {}", kDefaultTarget, targets_.default_stays());
}

Status Orders::pin(const std::string& name, const std::string& scope) {
    if (const auto no = ask(targets_, name, Use::pin)) return no->error_of(name);
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!targets_.kernel().has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    Target& target = targets_.all().at(name);
    const Owned* known = target.entry();
    const Owned before = known == nullptr ? Owned{} : *known;
    target.hold(Holder::pin, scope);
    engine_.write();
    const Target* after = targets_.find(name);
    if (after == nullptr) return fail(name + ": vanished", ENOENT);
    if (after->state == State::pinned) return {};
    if (Owned* entry = after->entry(); entry != nullptr) entry->hold(before.holder, before.note);
    const std::string reason = after->reason;
    engine_.write();
    return fail(name + ": " + reason, EIO);
}

Status Orders::unpin(const std::string& name) {
    targets_.look_at(name, targets_.edges().files.unbound_mask());
    Owned* entry = targets_.edges().store.find(name);
    if (entry == nullptr || !is_order(entry->holder))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    entry->hold(Holder::policy);
    if (Target* target = target_of(targets_, name); target != nullptr) target->hold(Holder::policy);
    engine_.step_all();
    const Target* after = targets_.find(name);
    // What was not put back is tried again.
    return after == nullptr || after->stuck == 0 ? Status() : fail(name + ": " + after->reason, EIO);
}

Status Orders::revert(const std::optional<std::string>& name) {
    std::vector<std::string> names;
    if (name) {
        if (const auto no = ask(targets_, *name, Use::revert)) return no->error_of(*name);
        names.push_back(*name);
    } else {
        if (const std::string why = targets_.observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        targets_.look();
        // Also targets without a setting of ours: they would be planned on their own once @default is held.
        for (const auto& [each, target] : targets_.all())
            if (!why_not(targets_, target, Use::revert)) names.push_back(each);
        // Targets that could not be read since the start get the order, too; it waits until they can be read.
        for (Owned* entry : targets_.edges().store.all())
            if (!entry->is_mask() && targets_.find(entry->name) == nullptr) entry->hold(Holder::revert);
    }
    const auto holds_ours = [this](const std::string& each) {
        const Target* target = targets_.find(each);
        return target != nullptr && target->holds_ours();
    };
    const auto before = std::ranges::count_if(names, holds_ours);
    for (const std::string& each : names) targets_.all().at(each).hold(Holder::revert);
    engine_.step_all();  // @default must not move what was reverted
    reverts_ += static_cast<unsigned>(before - std::ranges::count_if(names, holds_ours));
    const auto left = std::ranges::find_if(names, holds_ours);
    return left != names.end() ? fail(*left + ": " + targets_.find(*left)->reason, EIO) : Status();
}

}  // namespace wq
