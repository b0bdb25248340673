// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/ownership.h"

#include <vector>

namespace wq {
namespace {

bool is_planned(const Target& target) {
    return target.plan.finding == Finding::in_place || target.plan.finding == Finding::change;
}

std::string text_of_strict(const Target& target) {
    return target.now.strict == true ? "strict" : "not strict";
}

}  // namespace

// An entry that says `slot` while no slot runs was left by an earlier daemon: the policy holds it.
Holder holder_of(const Target& target, const BaselineEntry* entry) {
    if (target.external) return Holder::external;
    if (target.waits_for_udev()) return Holder::udev;
    if (target.in_slot) return Holder::slot;
    return entry != nullptr && is_order(entry->holder) ? entry->holder : Holder::policy;
}

bool holds_ours(const Target& target, const BaselineEntry* entry) {
    return entry != nullptr && entry->whose(target.now.scope.word, target.now.strict).is_ours();
}

Workqueue as_before_us(const Target& target, const BaselineEntry* entry) {
    Workqueue out = target.now;
    if (entry != nullptr && !target.external) {
        out.scope = {entry->scope, scope_named(entry->scope)};
        if (entry->may_strict) out.strict = entry->strict;
    }
    return out;
}

BaselineEntry& Ownership::entry_for(const Workqueue& target) {
    if (entry(target.name) == nullptr) store_.put(entry_of(target));
    return *entry(target.name);
}

// Only our writes change the word and the strictness of a target that we manage. Any other value is an
// external writer's, even if it is one of our own words: it is not the one that we wrote last.
std::optional<std::string> Ownership::notice(Target& target, std::optional<bool> strict) {
    const std::string& word = target.now.scope.word;
    if (word.empty()) return {};  // it could not be read
    std::optional<std::string> news;
    if (BaselineEntry* known = entry(target.now.name); known != nullptr) {
        const bool strict_counts = strict && minds(target, *strict);
        const bool since_before = known->external && !target.external;  // known from before the start
        const bool word_is_ours = known->whose(word) == Whose::ours;
        const Found found = known->settle(word, strict);
        const bool of_strict =
            found.word != Whose::foreign && strict_counts && found.strict == Whose::foreign;
        const std::string text = of_strict || (since_before && word_is_ours) ? text_of_strict(target) : word;
        if (since_before)
            target.external = text;
        else if (!target.external && (of_strict || found.word == Whose::foreign))
            news = text;
    } else if (!target.external) {
        news = notice_change(target);
    }
    target.last_word = word;
    if (strict) target.last_strict = strict;
    return news;
}

// Whether STRICT matters if it is not ours: we wrote the strictness before, or a rule asks for another one.
bool Ownership::minds(const Target& target, bool strict) const {
    const BaselineEntry* known = entry(target.now.name);
    if (known != nullptr && known->may_strict) return true;
    return is_planned(target) && target.plan.strict && target.plan.strict != strict;
}

// Nothing was written yet: the baseline is what was there before the external writer wrote.
std::optional<std::string> Ownership::notice_change(const Target& target) {
    if (!is_planned(target) || target.last_word.empty()) return {};
    const bool word = target.now.scope.word != target.last_word;
    const bool strict = target.plan.strict && target.last_strict && target.now.strict &&
                        target.now.strict != target.last_strict;
    if (!word && !strict) return {};
    Workqueue before = target.now;
    before.scope.word = target.last_word;
    before.strict = target.last_strict;
    entry_for(before);
    return word ? target.now.scope.word : text_of_strict(target);
}

void Ownership::leave_to_writer(Target& target, const std::string& text) {
    BaselineEntry& known = *entry(target.now.name);
    known.external = true;
    known.end_slot();
    target.external = text;
}

void Ownership::stay_at_baseline(Target& target, const std::string& why) {
    BaselineEntry& known = entry_for(target.now);
    known.hold(Holder::revert);
    known.why = why;
}

void Ownership::start_over() {
    for (const auto& [name, known] : store_.entries()) {
        BaselineEntry& mine = *entry(name);
        if (mine.holder == Holder::revert) mine.hold(Holder::policy);
        mine.external = false;
        mine.announce_baseline();
    }
}

Status Ownership::keep() {
    std::vector<std::string> names;
    for (const auto& [name, known] : store_.entries()) names.push_back(name);
    for (const std::string& name : names) {
        BaselineEntry& mine = *entry(name);
        const bool goes_back = mine.has_claim() && (mine.holder == Holder::slot ||
                                                    mine.holder == Holder::revert || name == kDefaultTarget);
        mine.hold(goes_back ? Holder::slot : Holder::policy);
        if (!mine.has_claim() && !mine.external) store_.remove(name);
    }
    return store_.save();
}

}  // namespace wq
