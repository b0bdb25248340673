// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/reconciler.h"

#include <fmt/format.h>
#include <syslog.h>

namespace wq {
namespace {

// Whether what is ours is about to be put back.
bool goes_back(const Managed& item, const Wish& wish, const std::string& observing) {
    if (item.external) return (item.owns_strict() || !observing.empty()) && item.holds_ours();
    return !wish.hands_off && !wish.word && !item.is_stuck();
}

void drop_if_settled(const Managed& item) {
    if (const Owned* entry = item.entry(); entry != nullptr && entry->is_settled())
        item.store->remove(item.name(), item.file());
}

}  // namespace

void Reconciler::run(std::vector<Job>& jobs, const std::string& observing) {
    for (const auto& [item, wish] : jobs) {
        item->show(wish.shown());
        announce(*item, wish, goes_back(*item, wish, observing));
    }
    const auto saved = store_.save();
    unsaved_ = saved ? "" : saved.error().in("its baseline cannot be saved").text;
    if (!saved) log_.write_once(LOG_ERR, Event::baseline_broken, saved.error().in("no new settings").text);
    for (auto& [item, wish] : jobs) {
        // Our scope beside an external strictness stays until the daemon ends or must not write; our
        // strictness beside an external scope does not: nobody asked for that scope to be strict.
        if (item->external && goes_back(*item, wish, observing)) put_half_back(*item);
        if (wish.hands_off) continue;
        if (!wish.word)
            put_back(*item);  // needs no save: the baseline was on disk before our first write
        else if (saved)
            carry_out(*item, wish);
        else if (wish.sets(*item)) {
            item->show({State::waiting, unsaved_});
            if (const Owned* entry = item->entry(); entry != nullptr && entry->holder == Holder::slot)
                put_back(*item);  // no arm of a slot stays without its slot
        }
    }
    if (const auto again = store_.save(); !again) log_.write_once(LOG_ERR, Event::none, again.error().text);
}

// Not a strictness that is in place already: an external writer may have written it.
void Reconciler::announce(Managed& item, const Wish& wish, bool goes_back) {
    if (wish.wants()) item.stuck = 0;  // the baseline is not to be put back any more
    if (wish.sets(item)) {
        const bool strict_changes = wish.strict != item.values().strict;
        item.make_entry().announce({*wish.word, strict_changes ? wish.strict : std::nullopt});
        return;
    }
    item.failures = 0;  // nothing is left to retry
    if (Owned* entry = item.entry(); entry != nullptr && goes_back) entry->announce_baseline();
}

void Reconciler::carry_out(Managed& item, const Wish& wish) {
    if (!wish.sets(item)) {
        if (Owned* entry = item.entry(); entry != nullptr) entry->end_slot();
        return drop_if_settled(item);
    }
    files_.about_to_write();
    const Outcome outcome = timed([&] {
        return writer_.apply(item.name(), {*wish.word, wish.strict}, item.seen(), item.file());
    });
    counts_.time += outcome.took;
    outcome.kind == Outcome::Kind::done ? wrote(item, wish, outcome.took)
                                        : take_failure(item, *wish.word, outcome);
}

void Reconciler::wrote(Managed& item, const Wish& wish, std::uint64_t took) {
    const Values old = item.values();
    Owned& entry = *item.entry();
    const FileWords& words = words_of(entry);
    const Knob file = item.file();
    const bool strict_only = old.main == wish.word && wish.strict && old.strict;
    const std::string change =
        strict_only
            ? fmt::format("affinity_strict {:d} -> {:d}", *old.strict, *wish.strict)
            : fmt::format("{}{} -> {}", words.label, quoted(file, old.main), quoted(file, *wish.word));
    item.failures = 0;
    if (entry.is_mask()) {
        item.see(look_at(files_, *item.entry()));  // the effective mask
    } else {
        item.wrote({*wish.word, wish.strict});
        entry.settle({*wish.word, wish.strict});
    }
    entry.end_slot();
    log_.write(item.held == wish.word ? LOG_DEBUG : LOG_INFO, words.set, item.name(),
               fmt::format("{}: {}", change, item.reason),
               {{words.old_field, plain(file, old.main)},
                {words.new_field, plain(file, *wish.word)},
                {"WQ_WRITE_USEC", std::to_string(took)}});
    drop_if_settled(item);
}

// The files may now hold our word, the baseline, a misparse, or what an external writer wrote.
void Reconciler::take_failure(Managed& item, const std::string& word, const Outcome& outcome) {
    using End = Outcome::Kind;
    Owned& entry = *item.entry();
    if (!outcome.stored.empty()) entry.main.allow(outcome.stored);
    if (outcome.kind == End::foreign) entry.of(outcome.file).claim.clear();
    item.see(look_at(files_, *item.entry()));
    if (outcome.failed()) counts_.errors++;
    switch (outcome.kind) {
        case End::done:
            return;
        case End::gone:
            store_.remove(item.name(), item.file());
            item.gone = true;
            return;
        case End::foreign:
            return leave_to_writer(item, outcome.text, log_);
        case End::unsupported:
            return refuse(item, State::unsupported, word,
                          fmt::format("the kernel stored {} for {}; baseline put back", outcome.found(),
                                      quoted(item.file(), word)),
                          0);
        case End::transient:
            if (++item.failures < Managed::kTries)
                return item.show({State::waiting, fmt::format("try {} of {}: {}", item.failures,
                                                              Managed::kTries, outcome.text)});
            [[fallthrough]];
        case End::permanent:
            return refuse(item, State::quarantined, word, outcome.text, outcome.code);
    }
}

// Logged once, because WORD is not tried again until a reload.
void Reconciler::refuse(Managed& item, State as, const std::string& word, const std::string& reason,
                        int code) {
    if (item.refusal_of(word) == nullptr) item.refused.push_back({word, as, reason});
    item.show({as, reason});
    item.failures = 0;
    const FileWords& words = words_of(*item.entry());
    log_.write(LOG_WARNING, as == State::unsupported ? Event::unsupported : Event::quarantined, item.name(),
               words.label + reason,
               {{words.new_field, plain(item.file(), word)}, {"ERRNO", std::to_string(code)}});
    put_back(item);
}

// Puts the baseline back, if the item has an entry. After that the entry is kept only if it has an order.
void Reconciler::put_back(Managed& item) {
    Owned* entry = item.entry();
    if (entry == nullptr) return;
    if (item.is_stuck()) return item.show({State::quarantined, item.stuck_why});
    if (entry->has_claim()) files_.about_to_write();
    const Outcome outcome = timed([&] { return writer_.put_back(item.name(), item.seen(), item.file()); });
    counts_.time += outcome.took;
    const std::string& before = entry->main.baseline;
    if (outcome.failed()) {
        item.see(look_at(files_, *item.entry()));
        item.stuck++;
        item.stuck_why = fmt::format("not put back to {}: {}", quoted(item.file(), before), outcome.text);
        item.show({State::quarantined, item.stuck_why});
        return failed_to_put_back(item, words_of(*entry).label + item.reason, outcome.code);
    }
    item.stuck = 0;
    if (outcome.kind == Outcome::Kind::foreign) {
        entry->of(outcome.file).claim.clear();
        item.see(look_at(files_, *item.entry()));
        return leave_to_writer(item, outcome.text, log_);
    }
    if (outcome.kind == Outcome::Kind::gone) item.gone = true;
    if (outcome.wrote) {
        const FileWords& words = words_of(*entry);
        log_.write(item.held == before ? LOG_DEBUG : LOG_INFO, words.restored, item.name(),
                   fmt::format("{}{} {}{}", words.label, words.back, quoted(item.file(), before),
                               let_in(files_, *entry)),
                   {{words.old_field, plain(item.file(), item.values().main)},
                    {words.new_field, plain(item.file(), before)},
                    {"WQ_WRITE_USEC", std::to_string(outcome.took)}});
        Values now{before, {}};
        if (entry->strict) now.strict = entry->strict->baseline == "1";
        entry->is_mask() ? item.see(look_at(files_, *item.entry())) : item.wrote(now);
    }
    entry->release();
    entry->end_slot();
    if (entry->holder == Holder::policy) store_.remove(item.name(), item.file());
}

// After kTries failures a baseline is tried again only at exit and after a reload, not at every tick.
void Reconciler::failed_to_put_back(Managed& item, const std::string& text, int code) {
    counts_.errors++;
    log_.write_once(LOG_ERR, Event::quarantined, item.name() + ": " + text,
                    {{"WQ_NAME", item.name()}, {"ERRNO", std::to_string(code)}});
}

void Reconciler::put_half_back(Managed& item) {
    files_.about_to_write();
    const Outcome outcome = writer_.put_back(item.name(), {}, item.file());
    if (outcome.failed()) failed_to_put_back(item, "not put back: " + outcome.text, outcome.code);
    item.see(look_at(files_, *item.entry()));
}

// Writes no third scope in between. Each window of @default begins with a change from the other arm, so
// wq_affn_dfl_set(), which ignores a write of the current value, always sees a change.
Outcome Reconciler::rewrite(const Target& target, const Arm& arm,
                            const std::function<std::uint64_t()>& clock) {
    files_.about_to_write();
    const std::uint64_t began = clock();
    Outcome outcome;
    for (unsigned i = 0; i < Managed::kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++) {
        if (outcome.kind == Outcome::Kind::transient) counts_.errors++;  // take_failure() counts the last one
        outcome = writer_.rewrite(target.now.name, {arm.word(), arm.strict});
    }
    if (outcome.kind == Outcome::Kind::done)
        target.entry()->settle({arm.word(), arm.strict ? arm.strict : target.now.strict});
    outcome.took = clock() - began;
    counts_.time += outcome.took;
    return outcome;
}

}  // namespace wq
