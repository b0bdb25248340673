// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/scope_writer.h"

#include <cerrno>

namespace wq {
namespace {

// Whether the kernel may have stored STORED when WORD was written: it stores the beginning of WORD, or
// nothing, and then the file is unchanged. Any other word was written by an external writer since.
bool is_made_of(const std::string& stored, const std::string& word, const BaselineEntry& entry) {
    return word.starts_with(stored) || entry.whose(stored) != Whose::foreign;
}

Outcome foreign_strictness(bool strict) {
    return {Outcome::Kind::foreign, false, strict ? "strict" : "not strict", 0, "", true};
}

// ENTRY with its claim reduced to what was SEEN in the files, plus WORD. So a value that changed since then
// counts as foreign, even if it is the baseline.
BaselineEntry as_seen(const BaselineEntry& entry, const Seen& seen, const std::string& word) {
    BaselineEntry out = entry;
    if (seen.word.empty()) return out;
    out.may_hold.clear();
    if (entry.whose(seen.word) != Whose::foreign) out.allow(seen.word);
    out.allow(word);
    if (const std::string other = misparse_of(word); !other.empty()) out.allow(other);
    // If no strictness was SEEN, the file may hold ours or the baseline. If another one than ours was SEEN,
    // ours is announced but not in place yet.
    if (out.may_strict && !seen.strict)
        out.announce_baseline();
    else if (out.may_strict != seen.strict)
        out.may_strict.reset();
    return out;
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

Outcome error_outcome(const Error& error, bool wrote) {
    return {kind_of_error(error.code), wrote, error.text, error.code};
}

Outcome not_announced(const std::string& name) {
    return {Outcome::Kind::permanent, false, name + ": its baseline is not on disk", EPERM};
}

// The entry in the store says what may be written, not the reduced ENTRY of as_seen().
Status ScopeWriter::write_scope(const BaselineEntry& entry, const std::string& word) {
    const BaselineEntry* stored = store_.find(entry.name);
    const bool announced = stored->on_disk.yes && stored->may_be_ours(word);
    if (word != stored->scope && !announced) return fail(not_announced(entry.name).text, EPERM);
    return files_.write_scope(entry.name, entry.inode, word);
}

Status ScopeWriter::write_strict(const BaselineEntry& entry, bool strict) {
    const BaselineEntry* stored = store_.find(entry.name);
    const bool announced = stored->on_disk.yes && stored->may_strict == strict;
    if (strict != stored->strict && !announced) return fail(not_announced(entry.name).text, EPERM);
    return files_.write_strict(entry.name, entry.inode, strict);
}

// Read, compare, write, read back. The outcome is `done` if the file holds WORD.
Outcome ScopeWriter::set_scope(const BaselineEntry& entry, const std::string& word, const Anew& anew) {
    const auto now = files_.read_scope(entry.name, entry.inode);
    if (!now) return error_outcome(now.error(), false);
    if (now->word == word && !anew.always) return {};
    if (entry.whose(now->word) == Whose::foreign) return {Outcome::Kind::foreign, false, now->word, 0};
    if (!anew.via.empty())
        if (const auto written = write_scope(entry, anew.via); !written)
            return error_outcome(written.error(), false);
    if (const auto written = write_scope(entry, word); !written) return error_outcome(written.error(), false);
    const auto stored = files_.read_scope(entry.name, entry.inode);
    if (!stored) return error_outcome(stored.error(), true);
    if (stored->word != word)
        return {is_made_of(stored->word, word, entry) ? Outcome::Kind::unsupported : Outcome::Kind::foreign,
                true, stored->word, 0};
    return {Outcome::Kind::done, true, word, 0};
}

Outcome ScopeWriter::set_strict(const BaselineEntry& entry, bool strict, bool always) {
    const auto now = files_.read_strict(entry.name, entry.inode);
    if (!now) return error_outcome(now.error(), false);
    if (*now == strict && !always) return {};
    if (entry.whose_strict(*now) == Whose::foreign) return foreign_strictness(*now);
    if (const auto written = write_strict(entry, strict); !written)
        return error_outcome(written.error(), false);
    return {Outcome::Kind::done, true, "", 0};
}

Outcome ScopeWriter::set(const std::string& name, const Seen& seen, const std::string& word,
                         std::optional<bool> strict, const Anew& anew) {
    const BaselineEntry* stored = store_.find(name);
    if (stored == nullptr || !stored->on_disk.yes) return not_announced(name);
    const BaselineEntry entry = as_seen(*stored, seen, word);
    // Looks for an external writer's strictness before the word is written: afterwards it is too late.
    if (strict)
        if (const auto now = files_.read_strict(name, entry.inode)) {
            const bool was_wanted = !seen.word.empty() && seen.strict == strict && *now != *strict;
            if (was_wanted || entry.whose_strict(*now) == Whose::foreign) return foreign_strictness(*now);
        }
    Outcome out = set_scope(entry, word, anew);
    if (out.kind == Outcome::Kind::unsupported) {
        BaselineEntry ours = entry;
        ours.allow(out.text);
        Outcome back = put_back(ours);
        back.stored = out.stored = out.text;
        return back.kind == Outcome::Kind::done ? out : back;
    }
    out.wrote_word = out.wrote;
    if (out.kind != Outcome::Kind::done || !strict) return out;
    const Outcome second = set_strict(entry, *strict, anew.always);
    return {second.kind, out.wrote || second.wrote, second.text, second.code,
            "",          second.of_strict,          out.wrote,   second.wrote};
}

Outcome ScopeWriter::apply(const std::string& name, const std::string& word, std::optional<bool> strict,
                           const Seen& seen) {
    return set(name, seen, word, strict, {});
}

Outcome ScopeWriter::rewrite(const std::string& name, const std::string& word, std::optional<bool> strict,
                             const std::string& via) {
    return set(name, {}, word, strict, {true, via});
}

Outcome ScopeWriter::put_back(const std::string& name, const Seen& seen) {
    const BaselineEntry* stored = store_.find(name);
    if (stored == nullptr) return not_announced(name);
    return put_back(as_seen(*stored, seen, stored->scope));
}

Outcome ScopeWriter::put_back(const BaselineEntry& entry) {
    Outcome scope = set_scope(entry, entry.scope, {});
    if (scope.kind == Outcome::Kind::unsupported)
        scope = {Outcome::Kind::permanent, true, "the kernel stored '" + scope.text + "'", 0};
    if (scope.kind == Outcome::Kind::gone || !entry.may_strict || !entry.strict) return scope;
    const Outcome strict = set_strict(entry, *entry.strict, false);
    // Both were tried. Returns a failure first, because something of ours is left, then a foreign value.
    const Outcome& worse =
        scope.failed() || (scope.kind != Outcome::Kind::done && !strict.failed()) ? scope : strict;
    return {worse.kind, scope.wrote || strict.wrote, worse.text, worse.code, "", worse.of_strict};
}

bool is_back(const ScopeFiles& files, const BaselineEntry& entry) {
    const auto scope = files.read_scope(entry.name, entry.inode);
    if (!scope) return kind_of_error(scope.error().code) == Outcome::Kind::gone;
    if (scope->word != entry.scope || !entry.may_strict) return scope->word == entry.scope;
    const auto strict = files.read_strict(entry.name, entry.inode);
    return strict && entry.whose_strict(*strict) != Whose::ours;
}

Look look_at(const ScopeFiles& files, BaselineEntry& entry) {
    Look out;
    if (const auto scope = files.read_scope(entry.name, entry.inode)) out.scope = *scope;
    if (!out.scope) return out;
    if (entry.strict)
        if (const auto strict = files.read_strict(entry.name, entry.inode)) out.strict = *strict;
    out.found = entry.settle(out.scope->word, out.strict);
    return out;
}

}  // namespace wq
