// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/target.h"

#include "machine/udev.h"

namespace wq {

std::string_view name_of(State state) {
    constexpr std::string_view kNames[] = {"unmanaged", "leave",    "as-planned",  "waiting",
                                           "comparing", "set",      "kept",        "reverted",
                                           "pinned",    "external", "unsupported", "quarantined"};
    static_assert(std::size(kNames) == std::size(kAllStates));
    return kNames[static_cast<std::size_t>(state)];
}

Owned& Managed::make_entry() {
    Owned* known = entry();
    return known != nullptr ? *known : store->put(entry_now());
}

bool Managed::holds_ours() const {
    const Owned* known = entry();
    return known != nullptr && known->whose(values()).is_ours();
}

bool Managed::owns_strict() const {
    const Owned* known = entry();
    return known != nullptr && known->strict && known->strict->may_be_ours();
}

// Only our writes change the word and the strictness of a target that we manage. Any other value is an
// external writer's, even if it is one of our own words: it is not the one that we wrote last. A strictness
// counts if we wrote it before, or if a rule asks for another one.
std::optional<std::string> Managed::notice(std::optional<bool> strict) {
    const Values now{values().main, strict};
    if (now.main.empty()) return {};  // it could not be read
    std::optional<std::string> news;
    if (Owned* known = entry(); known != nullptr) {
        const auto wanted = wanted_strict();
        const bool strict_counts = strict && (owns_strict() || (wanted && wanted != strict));
        const bool since_before = known->external && !external;  // known from before the start
        const bool word_is_ours = known->main.whose(now.main) == Whose::ours;
        const Found found = known->settle(now);
        const bool of_strict =
            found.word != Whose::foreign && strict_counts && found.strict == Whose::foreign;
        const bool shows_strict = of_strict || (since_before && word_is_ours);
        const std::string text = shows_strict ? plain(Knob::strict, text_of_strict(values().strict == true))
                                              : plain(file(), now.main);
        if (since_before)
            external = text;
        else if (!external && (of_strict || found.word == Whose::foreign))
            news = text;
    } else if (!external) {
        news = notice_change();
    }
    last = {now.main, strict ? strict : last.strict};
    return news;
}

// Nothing was written yet: the baseline is what was there before the external writer wrote.
std::optional<std::string> Managed::notice_change() {
    if (!is_managed() || last.main.empty()) return {};
    const Values now = values();
    Owned before = entry_now();
    const bool word = !before.main.same(now.main, last.main);
    const bool strict = wanted_strict() && last.strict && now.strict && now.strict != last.strict;
    if (!word && !strict) return {};
    before.main.baseline = last.main;
    if (!last.strict) before.strict.reset();
    if (before.strict) before.strict->baseline = text_of_strict(*last.strict);
    store->put(std::move(before));
    return word ? plain(file(), now.main) : plain(Knob::strict, text_of_strict(*now.strict));
}

void Target::see(const Look& look) {
    last = {look.scope ? look.scope->word : "", look.strict};
    if (look.scope) now.scope = *look.scope;
    if (look.strict) now.strict = look.strict;
}

void Target::wrote(const Values& values) {
    now.scope = {values.main, values.main == "default" ? before : scope_named(values.main)};
    if (values.strict) now.strict = values.strict;
    last = {values.main, values.strict ? values.strict : last.strict};
}

// An entry that says `slot` while no slot runs was left by an earlier daemon: the policy holds it.
Holder Target::holder() const {
    if (external) return Holder::external;
    if (now.untouchable == kNotProcessedByUdev) return Holder::udev;
    if (in_slot) return Holder::slot;
    const Owned* known = entry();
    return known != nullptr && is_order(known->holder) ? known->holder : Holder::policy;
}

void Target::hold(Holder by, const std::string& scope) {
    make_entry().hold(by, scope);
    std::erase_if(refused, [&](const Refusal& one) { return one.word == scope; });
    in_slot = false;
    stuck = 0;
}

Workqueue Target::before_us() const {
    Workqueue out = now;
    if (const Owned* known = entry(); known != nullptr && !external) {
        out.scope = {known->main.baseline, scope_named(known->main.baseline)};
        if (owns_strict()) out.strict = known->strict->baseline == "1";
    }
    return out;
}

}  // namespace wq
