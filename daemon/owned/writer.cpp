// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/writer.h"

#include <cerrno>

#include "base/cpu_set.h"

namespace wq {
namespace {

using End = Outcome::Kind;

Outcome not_announced(const std::string& name) {
    return {End::permanent, false, name + ": its baseline is not on disk", EPERM};
}

Outcome foreign(Knob file, const std::string& text, bool wrote = false) {
    return {End::foreign, wrote, plain(file, text), 0, file};
}

// Whether the kernel may have stored STORED when TEXT was written: of a word the beginning, of a mask a part,
// or nothing, and then the file is unchanged. Any other value was written by an external writer since.
bool is_made_of(const Attribute& attribute, const std::string& stored, const std::string& text) {
    if (attribute.whose(stored) != Whose::foreign) return true;
    if (attribute.file != Knob::mask) return text.starts_with(stored);
    const auto all = CpuSet::parse_mask(text);
    const auto part = CpuSet::parse_mask(stored);
    return all && part && all->contains(*part);
}

// Reduces the claim of ATTRIBUTE to what was SEEN in the file, plus TEXT if it is to be written. So a value
// that changed since then counts as foreign, even if it is the baseline.
void reduce(Attribute& attribute, const std::optional<std::string>& seen,
            const std::optional<std::string>& text) {
    if (!seen) return attribute.announce_baseline();
    const Whose found = attribute.settle(*seen);
    if (!text) return;
    if (found == Whose::baseline) attribute.allow(*seen);
    attribute.allow(*text);
    if (const std::string other = misparse_of(*text); !other.empty()) attribute.allow(other);
}

std::optional<std::string> text_of(std::optional<bool> strict) {
    return strict ? std::optional(text_of_strict(*strict)) : std::nullopt;
}

Owned as_seen(Owned entry, const Values& seen, const Values& values) {
    if (seen.main.empty()) return entry;
    reduce(entry.main, seen.main, values.main);
    if (entry.strict) reduce(*entry.strict, text_of(seen.strict), text_of(values.strict));
    return entry;
}

}  // namespace

Outcome::Kind kind_of_error(int code) {
    switch (code) {
        case ENOENT:
        case ENODEV:
        case ENXIO:
            return End::gone;
        case ENOMEM:
        case EBUSY:
        case EAGAIN:
        case EINTR:
        case EMFILE:
        case ENFILE:
            return End::transient;
        default:
            return End::permanent;
    }
}

Outcome error_outcome(const Error& error, bool wrote) {
    return {kind_of_error(error.code), wrote, error.text, error.code};
}

Outcome worse_of(Outcome main, const Outcome& strict) {
    const auto rank = [](const Outcome& each) {
        return each.kind == End::gone ? 3 : each.failed() ? 2 : each.kind == End::done ? 0 : 1;
    };
    const bool wrote = main.wrote || strict.wrote;
    if (rank(strict) > rank(main)) main = strict;
    main.wrote = wrote;
    return main;
}

Result<std::string> OwnedWriter::read(const Owned& entry, Knob file) const {
    if (file == Knob::scope)
        return files_.read_scope(entry.name, entry.inode).map([](const ScopeFile& now) { return now.word; });
    if (file == Knob::strict) return files_.read_strict(entry.name, entry.inode).map(text_of_strict);
    const auto now = files_.read_mask(entry.name);
    if (now && now->inode != entry.inode)
        return fail("was replaced by another workqueue of the same name", ENODEV);
    return now.map([](const MaskFile& mask) { return mask.text; });
}

// The entry in the store says what may be written, not the reduced one of as_seen().
Status OwnedWriter::write(const Owned& entry, Knob file, const std::string& text) {
    const Attribute& stored = store_.find(entry.name, entry.main.file)->of(file);
    if (!stored.same(text, stored.baseline) && !(stored.on_disk.yes && stored.is_claimed(text)))
        return fail(not_announced(entry.name).text, EPERM);
    if (file == Knob::scope) return files_.write_scope(entry.name, entry.inode, text);
    if (file == Knob::strict) return files_.write_strict(entry.name, entry.inode, text == "1");
    return files_.write_mask(entry.name, entry.inode, text);
}

// Read, compare, write, read back. The outcome is `done` if the file holds TEXT. A strictness is not read
// back: the kernel stores it as it is.
Outcome OwnedWriter::set(const Owned& entry, const Attribute& attribute, const std::string& text,
                         const How& how) {
    const Knob file = attribute.file;
    const auto now = read(entry, file);
    if (!now) return error_outcome(now.error(), false);
    const bool came = how.seen && !attribute.same(*how.seen, text);
    if (attribute.same(*now, text) && !how.anew) return came ? foreign(file, text) : Outcome{};
    if (attribute.whose(*now) == Whose::foreign) return foreign(file, *now);
    if (const auto written = write(entry, file, text); !written) return error_outcome(written.error(), false);
    if (file == Knob::strict) return {End::done, true, ""};
    const auto stored = read(entry, file);
    if (!stored) return error_outcome(stored.error(), true);
    if (attribute.same(*stored, text)) return {End::done, true, ""};
    if (!is_made_of(attribute, *stored, text)) return foreign(file, *stored, true);
    return {End::unsupported, true, plain(file, *stored), 0, file, *stored};
}

// Looks for an external writer's strictness before anything is written: afterwards it is too late.
Outcome OwnedWriter::set(const Owned& stored, const Values& seen, const Values& values, const How& how) {
    if (!stored.is_on_disk()) return not_announced(stored.name);
    const Owned entry = as_seen(stored, seen, values);
    const auto strict = text_of(values.strict);
    if (strict && !entry.strict) return not_announced(entry.name);
    How how_strict{how.anew, text_of(seen.strict)};
    if (const auto now = strict ? read(entry, Knob::strict) : Result<std::string>(); strict && now) {
        const bool came = how_strict.seen && how_strict.seen != strict && *now == *strict;
        if (came || entry.strict->whose(*now) == Whose::foreign) return foreign(Knob::strict, *now);
    }
    Outcome first;
    if (strict == "0") first = set(entry, *entry.strict, *strict, how_strict);
    if (first.kind != End::done) return first;
    Outcome out = set(entry, entry.main, values.main, how);
    if (out.kind == End::unsupported) {
        Owned ours = entry;
        ours.main.allow(out.stored);
        Outcome back = put_back(ours);
        back.stored = out.stored;
        return back.kind == End::done ? out : back;
    }
    if (out.kind == End::done && strict) {
        const bool wrote = out.wrote;
        if (strict == "0") how_strict = {false, strict};  // only finds who wrote it meanwhile
        out = set(entry, *entry.strict, *strict, how_strict);
        out.wrote = out.wrote || wrote;
    }
    out.wrote = out.wrote || first.wrote;
    return out;
}

Outcome OwnedWriter::apply(const std::string& name, const Values& values, const Values& seen, Knob file) {
    const Owned* stored = store_.find(name, file);
    return stored == nullptr ? not_announced(name)
                             : set(*stored, seen, values,
                                   {false, seen.main.empty() ? std::nullopt : std::optional(seen.main)});
}

Outcome OwnedWriter::rewrite(const std::string& name, const Values& values) {
    const Owned* stored = store_.find(name);
    return stored == nullptr ? not_announced(name) : set(*stored, {}, values, {true});
}

Outcome OwnedWriter::put_back(const std::string& name, const Values& seen, Knob file) {
    const Owned* stored = store_.find(name, file);
    if (stored == nullptr) return not_announced(name);
    return put_back(as_seen(*stored, seen, {stored->main.baseline, {}}));
}

Outcome OwnedWriter::put_back(const Owned& entry) {
    const bool first = entry.strict && entry.strict->baseline == "0";
    Outcome strict;
    if (first) strict = put_back(entry, Knob::strict);
    const Outcome main = put_back(entry, entry.main.file);
    if (!first && main.kind != End::gone) strict = put_back(entry, Knob::strict);
    return worse_of(main, strict);
}

Outcome OwnedWriter::put_back(const Owned& entry, Knob file) {
    if (file == Knob::strict && (!entry.strict || !entry.strict->may_be_ours())) return {};
    const Attribute& attribute = file == Knob::strict ? *entry.strict : entry.main;
    Outcome out = set(entry, attribute, attribute.baseline, {});
    if (out.kind == End::unsupported)
        out = {End::permanent, true, "the kernel stored " + quoted(file, out.stored), 0};
    return out;
}

bool is_back(const WorkqueueFiles& files, const Owned& entry) {
    const auto scope = files.read_scope(entry.name, entry.inode);
    if (!scope) return kind_of_error(scope.error().code) == End::gone;
    if (scope->word != entry.main.baseline || !entry.strict || !entry.strict->may_be_ours())
        return scope->word == entry.main.baseline;
    const auto strict = files.read_strict(entry.name, entry.inode);
    return strict && entry.strict->whose(text_of_strict(*strict)) != Whose::ours;
}

Look look_at(const WorkqueueFiles& files, Owned& entry) {
    Look out;
    if (entry.is_mask()) {
        if (auto mask = files.read_mask(entry.name); mask && mask->inode == entry.inode)
            out.mask = std::move(*mask);
        if (out.mask) out.found = entry.settle({out.mask->text, {}});
        return out;
    }
    if (const auto scope = files.read_scope(entry.name, entry.inode)) out.scope = *scope;
    if (!out.scope) return out;
    if (entry.strict)
        if (const auto strict = files.read_strict(entry.name, entry.inode)) out.strict = *strict;
    out.found = entry.settle({out.scope->word, out.strict});
    return out;
}

}  // namespace wq
