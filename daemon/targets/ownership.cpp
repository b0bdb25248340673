// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/ownership.h"

#include <utility>
#include <vector>

namespace wq {
// An entry that says `slot` while no slot runs was left by an earlier daemon: the policy holds it.
Holder holder_of(const Target& target, const Owned* entry) {
    if (target.external) return Holder::external;
    if (target.waits_for_udev()) return Holder::udev;
    if (target.in_slot) return Holder::slot;
    return entry != nullptr && is_order(entry->holder) ? entry->holder : Holder::policy;
}

bool owns_strict(const Owned* entry) {
    return entry != nullptr && entry->strict && entry->strict->may_be_ours();
}

bool holds_ours(const Managed& item, const Owned* entry) {
    return entry != nullptr && entry->whose(item.values()).is_ours();
}

Workqueue as_before_us(const Target& target, const Owned* entry) {
    Workqueue out = target.now;
    if (entry != nullptr && !target.external) {
        out.scope = {entry->main.baseline, scope_named(entry->main.baseline)};
        if (owns_strict(entry)) out.strict = entry->strict->baseline == "1";
    }
    return out;
}

Owned& Ownership::entry_for(const Managed& item) {
    Owned* known = entry(item);
    return known != nullptr ? *known : store_.put(item.entry_now());
}

// Only our writes change the word and the strictness of a target that we manage. Any other value is an
// external writer's, even if it is one of our own words: it is not the one that we wrote last. A strictness
// counts if we wrote it before, or if a rule asks for another one.
std::optional<std::string> Ownership::notice(Managed& item, std::optional<bool> strict) {
    const Values now{item.values().main, strict};
    if (now.main.empty()) return {};  // it could not be read
    std::optional<std::string> news;
    if (Owned* known = entry(item); known != nullptr) {
        const auto wanted = item.wanted_strict();
        const bool strict_counts = strict && (owns_strict(known) || (wanted && wanted != strict));
        const bool since_before = known->external && !item.external;  // known from before the start
        const bool word_is_ours = known->main.whose(now.main) == Whose::ours;
        const Found found = known->settle(now);
        const bool of_strict =
            found.word != Whose::foreign && strict_counts && found.strict == Whose::foreign;
        const bool shows_strict = of_strict || (since_before && word_is_ours);
        const std::string text = shows_strict
                                     ? plain(Knob::strict, text_of_strict(item.values().strict == true))
                                     : plain(known->main.file, now.main);
        if (since_before)
            item.external = text;
        else if (!item.external && (of_strict || found.word == Whose::foreign))
            news = text;
    } else if (!item.external) {
        news = notice_change(item, item.values());
    }
    item.last = {now.main, strict ? strict : item.last.strict};
    return news;
}

// Nothing was written yet: the baseline is what was there before the external writer wrote.
std::optional<std::string> Ownership::notice_change(const Managed& item, const Values& now) {
    if (!item.is_managed() || item.last.main.empty()) return {};
    Owned before = item.entry_now();
    const bool word = !before.main.same(now.main, item.last.main);
    const bool strict =
        item.wanted_strict() && item.last.strict && now.strict && now.strict != item.last.strict;
    if (!word && !strict) return {};
    before.main.baseline = item.last.main;
    if (!item.last.strict) before.strict.reset();
    if (before.strict) before.strict->baseline = text_of_strict(*item.last.strict);
    store_.put(std::move(before));
    return word ? plain(item.file(), now.main) : plain(Knob::strict, text_of_strict(*now.strict));
}

void Ownership::leave_to_writer(Managed& item, const std::string& text) {
    Owned& known = *entry(item);
    known.external = true;
    known.end_slot();
    item.external = text;
}

void Ownership::stay_at_baseline(Target& target, const std::string& why) {
    Owned& known = entry_for(target);
    known.hold(Holder::revert, why);
}

void Ownership::start_over(Knob file) {
    for (const auto& [name, known] : store_.entries(file)) {
        Owned& mine = *store_.find(name, file);
        if (mine.holder == Holder::revert) mine.hold(Holder::policy);
        mine.external = false;
        mine.announce_baseline();
    }
}

Status Ownership::keep() {
    std::vector<std::string> names;
    for (const auto& [name, known] : store_.entries()) names.push_back(name);
    for (const std::string& name : names) {
        Owned& mine = *entry(name);
        const bool goes_back = mine.has_claim() && (mine.holder == Holder::slot ||
                                                    mine.holder == Holder::revert || name == kDefaultTarget);
        mine.hold(goes_back ? Holder::slot : Holder::policy);
        if (!mine.has_claim() && !mine.external) store_.remove(name);
    }
    return store_.save();
}

}  // namespace wq
