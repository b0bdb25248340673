// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/apply.h"

#include <cerrno>

namespace wq {
namespace {

Outcome error_outcome(const Error& error, bool wrote) {
    return {kind_of_error(error.code), wrote, error.text, error.code};
}

bool is_known(const BaselineEntry& entry, const std::string& word) {
    return word == entry.scope || entry.may_be_ours(word);
}

bool is_known(const BaselineEntry& entry, bool strict) {
    return entry.strict == strict || entry.may_strict == strict;
}

// Whether what is already so is written all the same, and through which other word.
struct Anew {
    bool always = false;
    std::string via = {};
};

Outcome foreign_strictness(bool strict) {
    return {Outcome::Kind::foreign, false, strict ? "strict" : "not strict", 0, "", true};
}

// Read, compare, write, read back. OUTCOME is done where the file holds WORD.
Outcome set_scope(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
                  const Anew& anew = {}) {
    const auto now = files.read_scope(entry.name, entry.inode);
    if (!now) return error_outcome(now.error(), false);
    if (now->word == word && !anew.always) return {};
    if (!is_known(entry, now->word)) return {Outcome::Kind::foreign, false, now->word, 0};
    if (!anew.via.empty())
        if (const auto written = files.write_scope(entry.name, entry.inode, anew.via); !written)
            return error_outcome(written.error(), false);
    if (const auto written = files.write_scope(entry.name, entry.inode, word); !written)
        return error_outcome(written.error(), false);
    const auto stored = files.read_scope(entry.name, entry.inode);
    if (!stored) return error_outcome(stored.error(), true);
    if (stored->word != word) return {Outcome::Kind::unsupported, true, stored->word, 0};
    return {Outcome::Kind::done, true, word, 0};
}

Outcome set_strict(ScopeFiles& files, const BaselineEntry& entry, bool strict, bool always = false) {
    const auto now = files.read_strict(entry.name, entry.inode);
    if (!now) return error_outcome(now.error(), false);
    if (*now == strict && !always) return {};
    if (!is_known(entry, *now)) return foreign_strictness(*now);
    if (const auto written = files.write_strict(entry.name, entry.inode, strict); !written)
        return error_outcome(written.error(), false);
    return {Outcome::Kind::done, true, "", 0};
}

}  // namespace

Outcome::Kind kind_of_error(int code) {
    switch (code) {
        case ENOENT:
        case ENODEV:
        case ENXIO:
            return Outcome::Kind::gone;
        case ENOMEM:
        case EBUSY:
        case EAGAIN:
        case EINTR:
        case EMFILE:
        case ENFILE:
            return Outcome::Kind::transient;
        default:
            return Outcome::Kind::permanent;
    }
}

std::string misparse_of(const std::string& word) {
    return word == "cache_shard" ? "cache" : "";
}

namespace {

Outcome set(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
            std::optional<bool> strict, const Anew& anew) {
    // Somebody else's strictness is found before the word is written, not when it is too late for that.
    if (strict)
        if (const auto now = files.read_strict(entry.name, entry.inode); now && !is_known(entry, *now))
            return foreign_strictness(*now);
    Outcome out = set_scope(files, entry, word, anew);
    if (out.kind == Outcome::Kind::unsupported) {
        BaselineEntry ours = entry;
        ours.allow(out.text);
        Outcome back = restore(files, ours);
        back.stored = out.stored = out.text;
        return back.kind == Outcome::Kind::done ? out : back;
    }
    if (out.kind != Outcome::Kind::done || !strict) return out;
    const Outcome second = set_strict(files, entry, *strict, anew.always);
    return {second.kind, out.wrote || second.wrote, second.text, second.code, "", second.of_strict};
}

bool left_ours(const Outcome& outcome) {
    return outcome.kind == Outcome::Kind::permanent || outcome.kind == Outcome::Kind::transient;
}

}  // namespace

Outcome apply(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
              std::optional<bool> strict) {
    return set(files, entry, word, strict, {});
}

Outcome rewrite(ScopeFiles& files, const BaselineEntry& entry, const std::string& word,
                std::optional<bool> strict, const std::string& via) {
    return set(files, entry, word, strict, {true, via});
}

Outcome restore(ScopeFiles& files, const BaselineEntry& entry) {
    Outcome scope = set_scope(files, entry, entry.scope);
    if (scope.kind == Outcome::Kind::gone || !entry.may_strict || !entry.strict) return scope;
    const Outcome strict = set_strict(files, entry, *entry.strict);
    // Both were tried. What is still ours is what has to be known first, then what is somebody else's.
    const Outcome& worse =
        left_ours(scope) || (scope.kind != Outcome::Kind::done && !left_ours(strict)) ? scope : strict;
    return {worse.kind, scope.wrote || strict.wrote, worse.text, worse.code, "", worse.of_strict};
}

Outcome restore_rest(ScopeFiles& files, BaselineEntry& entry) {
    Outcome out = restore(files, entry);
    if (!left_ours(out)) {
        entry.may_hold.clear();
        entry.may_strict.reset();
    }
    return out;
}

}  // namespace wq
