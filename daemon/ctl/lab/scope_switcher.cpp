// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/scope_switcher.h"

#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>

#include "machine/workqueue_fs.h"
#include "owned/restore.h"
#include "owned/scope_writer.h"

namespace wq::ab {

namespace {

constexpr unsigned kTries = 3;

}  // namespace

ScopeSwitcher::ScopeSwitcher(ScopeFiles& files, BaselineStore& store, Workqueue target, std::vector<Arm> arms,
                             const KernelInfo& kernel)
    : files_(files),
      store_(store),
      writer_(files, store),
      target_(std::move(target)),
      arms_(std::move(arms)),
      strict_(std::any_of(arms_.begin(), arms_.end(), [](const Arm& a) { return a.strict.has_value(); })),
      entry_(entry_of(target_)) {
    entry_.hold(Holder::slot);
    if (target_.kind != Kind::default_scope) return;
    // Scopes that no arm uses come first: with such a scope in between, every switch costs the same two
    // moves.
    for (const bool spare : {true, false})
        for (const Scope scope : kernel.scopes)
            if (std::none_of(arms_.begin(), arms_.end(), [&](const Arm& a) { return a.scope == scope; }) ==
                spare)
                vias_.emplace_back(name_of(scope));
}

Status ScopeSwitcher::begin() {
    if (store_.find(target_.name) != nullptr) return fail(target_.name + ": wq-tuned has set it already");
    store_.put(entry_);
    return store_.save();
}

std::string ScopeSwitcher::word_between(const std::string& to) const {
    for (const std::string& via : vias_)
        if (via != to && via != entry_.word_in_place()) return via;
    return "";
}

// WHAT may equal a word of ours; only the settled entry tells that an external writer wrote it.
Status ScopeSwitcher::foreign(const std::string& what) {
    if (entry_.has_claim())
        store_.put(entry_);
    else
        store_.remove(target_.name);
    const std::string text =
        fmt::format("{}: an external writer wrote '{}', which is left as it is", target_.name, what);
    if (const auto saved = store_.save(); !saved) return tl::unexpected(saved.error().in(text));
    return fail(text);
}

Status ScopeSwitcher::check() {
    const auto scope = files_.read_scope(target_.name, target_.inode);
    if (!scope) return failed({kind_of_error(scope.error().code), false, scope.error().text}, {});
    const auto strict = strict_ ? files_.read_strict(target_.name, target_.inode) : Result<bool>(false);
    if (!strict) return failed({kind_of_error(strict.error().code), false, strict.error().text}, {});
    const Found found = entry_.settle(scope->word, strict_ ? std::optional(*strict) : std::nullopt);
    if (found.word == Whose::foreign) return foreign(scope->word);
    if (found.strict == Whose::foreign) return foreign(*strict ? "strict" : "not strict");
    return {};
}

Status ScopeSwitcher::failed(const Outcome& outcome, const Arm& arm) {
    switch (outcome.kind) {
        case Outcome::Kind::gone:
            return fail(target_.name + ": it vanished, or is another workqueue now");
        case Outcome::Kind::foreign:
            entry_.disown(outcome.of_strict);
            (void)look_at(files_, entry_);
            return foreign(outcome.text);
        case Outcome::Kind::unsupported:
            return fail(fmt::format("{}: the kernel stored '{}' instead of '{}'", target_.name, outcome.text,
                                    arm.word));
        default:
            return fail(outcome.text, outcome.code);
    }
}

Status ScopeSwitcher::to(std::size_t number) {
    const Arm& arm = arms_.at(number);
    if (auto ours = check(); !ours) return ours;
    const std::string via = word_between(arm.word);
    entry_.announce(arm.word, arm.strict);
    if (!via.empty()) entry_.announce(via);
    store_.put(entry_);
    if (auto saved = store_.save(); !saved) return saved;
    Outcome outcome;
    for (unsigned i = 0; i < kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++)
        outcome = writer_.rewrite(target_.name, arm.word, arm.strict, via);
    if (outcome.kind != Outcome::Kind::done) return failed(outcome, arm);
    entry_.settle(arm.word, arm.strict);
    store_.put(entry_);
    return store_.save();
}

Status open_scope_store(BaselineStore& store, const ScopeFiles& files, const std::string& target) {
    if (auto loaded = store.load(); !loaded) return loaded;
    if (store.find(target) == nullptr) return {};
    if (!is_back(files, *store.find(target)))
        return fail(target +
                    ": it may hold a setting that wq-tuned left; `wq-tunectl undo` prints the way back");
    store.remove(target);
    return store.save();
}

bool restore_scopes(const Paths& paths, Log& log) {
    BaselineStore store(paths.baseline());
    if (const auto loaded = store.load(); !loaded) {
        log.write({LOG_ERR, Event::none, loaded.error().text});
        return false;
    }
    WorkqueueFs files(paths);
    return restore_entries(files, store, log, true) == 0;
}

}  // namespace wq::ab
