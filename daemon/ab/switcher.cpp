// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ab/switcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace wq::ab {
namespace {

constexpr unsigned kTries = 3;

}  // namespace

Switcher::Switcher(ScopeFiles& files, BaselineStore& store, Workqueue target, const std::vector<Arm>& arms,
                   const KernelInfo& kernel)
    : files_(files), store_(store), target_(std::move(target)), last_word_(target_.scope.word) {
    entry_ = {target_.name, target_.inode, target_.scope.word, target_.strict, {}, {}, kTrial};
    for (const Arm& arm : arms) {
        entry_.allow(arm.word);
        if (const auto other = misparse_of(arm.word); !other.empty()) entry_.allow(other);
        if (!arm.strict) continue;
        last_strict_ = target_.strict;
        if (arm.strict != target_.strict) entry_.may_strict = arm.strict;
    }
    if (target_.kind != Kind::default_scope) return;
    // One that no arm has comes first: through it all arms cost the same two moves.
    for (const bool spare : {true, false})
        for (const Scope scope : kernel.scopes)
            if (std::none_of(arms.begin(), arms.end(), [&](const Arm& a) { return a.scope == scope; }) ==
                spare)
                vias_.emplace_back(name_of(scope));
    for (const std::string& via : vias_) entry_.allow(via);
}

Status Switcher::begin() {
    if (store_.find(target_.name) != nullptr)
        return fail(target_.name + ": a setting of wq-tuned's is there already");
    store_.put(entry_);
    return store_.save();
}

std::string Switcher::word_between(const std::string& to) const {
    for (const std::string& via : vias_)
        if (via != to && via != last_word_) return via;
    return "";
}

Status Switcher::foreign(const std::string& what, bool of_strict) {
    // It may be a word of ours; that it is not, only we know.
    if (of_strict)
        entry_.may_strict.reset();
    else
        entry_.may_hold.clear();
    if (entry_.may_strict || !entry_.may_hold.empty())
        store_.put(entry_);
    else
        store_.remove(target_.name);
    const std::string text =
        fmt::format("{}: somebody else wrote '{}', which is left as it is", target_.name, what);
    if (const auto saved = store_.save(); !saved) return tl::unexpected(saved.error().in(text));
    return fail(text);
}

Status Switcher::check() {
    const auto scope = files_.read_scope(target_.name, target_.inode);
    if (!scope) return failed({kind_of_error(scope.error().code), false, scope.error().text}, {});
    bool other_strict = false;
    if (last_strict_) {
        const auto strict = files_.read_strict(target_.name, target_.inode);
        other_strict = strict && *strict != *last_strict_;
    }
    if (scope->word != last_word_) {
        if (other_strict) entry_.may_strict.reset();
        return foreign(scope->word, false);
    }
    if (other_strict) return foreign(*last_strict_ ? "not strict" : "strict", true);
    return {};
}

Status Switcher::failed(const Outcome& outcome, const Arm& arm) {
    switch (outcome.kind) {
        case Outcome::Kind::gone:
            return fail(target_.name + ": it vanished, or is another workqueue now");
        case Outcome::Kind::foreign:
            return foreign(outcome.text, outcome.of_strict);
        case Outcome::Kind::unsupported:
            return fail(
                fmt::format("{}: the kernel made '{}' of '{}'", target_.name, outcome.text, arm.word));
        default:
            return fail(outcome.text, outcome.code);
    }
}

Status Switcher::to(const Arm& arm) {
    if (auto ours = check(); !ours) return ours;
    Outcome outcome;
    for (unsigned i = 0; i < kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++)
        outcome = rewrite(files_, entry_, arm.word, arm.strict, word_between(arm.word));
    if (outcome.kind != Outcome::Kind::done) return failed(outcome, arm);
    last_word_ = arm.word;
    if (arm.strict) last_strict_ = arm.strict;
    return {};
}

}  // namespace wq::ab
