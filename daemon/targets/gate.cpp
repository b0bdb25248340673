// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/gate.h"

#include "machine/kernel_info.h"

namespace wq {
namespace {

// An arm with the word `default` means the scope that @default holds. If that is not the scope by which the
// arm is named, a pair would measure something else than its name says.
bool means_another(const Targets& targets, const Arms& arms) {
    const Target* parameter = targets.find(kDefaultTarget);
    if (parameter == nullptr || parameter->in_slot) return false;
    const auto now = parameter->now.scope.effective;
    const auto moved = [&](const Arm& arm) { return arm.is_default && now && arm.scope != *now; };
    return moved(arms.reference) || moved(arms.candidate);
}

}  // namespace

std::optional<No> why_not(const Targets& targets, const Target& target, Use use, const Arms* arms) {
    if (const std::string why = targets.observing(); !why.empty())
        return No{"nothing is written while observing: " + why, EPERM, true};
    if (!target.now.untouchable.empty()) return No{target.now.untouchable};
    if (target.external)
        return No{left_to_writer(target).reason + "; put the baseline back and reload the policy"};
    if (use == Use::revert) return {};
    if (target.now.name == kDefaultTarget && !targets.default_stays().empty())
        return No{targets.default_stays()};
    if (const std::string& why = targets.snapshot().pods_unknown; !why.empty())
        return No{"pods unknown: " + why};
    if (use == Use::pin) return {};
    const Holder holder = target.holder();
    if (is_order(holder))
        return No{holder == Holder::pin         ? "pinned; unpin it first"
                  : target.entry()->must_stay() ? target.entry()->note
                                                : "reverted by an operator's order; unpin it first",
                  EBUSY, true};
    if (target.is_stuck()) return No{target.stuck_why, EIO};
    if (target.unread) return No{"cannot be read now", EAGAIN};
    if (!target.now.scope.effective) return No{"wq-tuned does not know its current scope", EINVAL};
    if (arms == nullptr) return {};
    if (const Refusal* why = target.refusal_of(arms->candidate.word())) return No{why->reason, EAGAIN};
    if (means_another(targets, *arms))
        return No{"@default has another scope than this comparison assumes", EAGAIN};
    return {};
}

std::optional<No> ask(Targets& targets, const std::string& name, Use use) {
    if (const std::string lacks = lacks_scopes(targets.kernel()); !lacks.empty())
        return No{lacks, EOPNOTSUPP};
    targets.look_at(name, targets.edges().files.unbound_mask());
    const Target* target = targets.find(name);
    return target == nullptr ? No{"no such target", ENOENT} : why_not(targets, *target, use);
}

}  // namespace wq
