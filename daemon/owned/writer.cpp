// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <syslog.h>
#include <cerrno>
#include <filesystem>
#include <map>
#include <vector>

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

Outcome error_outcome(const Error& error, bool wrote) {
    return {kind_of_error(error.code), wrote, error.text, error.code};
}

// Of two writes that were both tried: a failure, since something of ours is left; then a foreign value.
Outcome worse_of(Outcome main, const Outcome& strict) {
    const auto rank = [](const Outcome& each) {
        return each.kind == End::gone ? 3 : each.failed() ? 2 : each.kind == End::done ? 0 : 1;
    };
    const bool wrote = main.wrote || strict.wrote;
    const std::uint64_t took = main.took + strict.took;
    if (rank(strict) > rank(main)) main = strict;
    main.wrote = wrote;
    main.took = took;
    return main;
}

constexpr unsigned kTries = 3;  // after transient errors, because there is no later
constexpr int kLockTries = 20;
constexpr useconds_t kLockPause = 100'000;  // us

struct Restored {
    Owned* entry;
    Outcome outcome = {};
};

void put_back(OwnedWriter& writer, Restored& item, Knob file) {
    const auto put_back = [&] {
        Outcome out;
        for (unsigned i = 0; i < kTries && (i == 0 || out.kind == End::transient); i++)
            out = writer.put_back(*item.entry, file);
        return out;
    };
    item.outcome = worse_of(item.outcome, timed(put_back));
}

// Logs the outcome, but not if the target was at its baseline already.
void report(const WorkqueueFiles& files, const Restored& item, Log& log) {
    using Kind = Outcome::Kind;
    const Owned& entry = *item.entry;
    const Outcome& outcome = item.outcome;
    const FileWords& words = words_of(entry);
    const std::string before = entry.main.baseline;
    const std::string quoted = wq::quoted(entry.main.file, before);
    const std::string baseline = quoted.empty() ? "" : " " + quoted;
    if (outcome.kind == Kind::done && outcome.wrote)
        log.write(
            {LOG_INFO,
             words.restored,
             fmt::format("{}: {}{}{}{}", entry.name, words.label, words.back, baseline, let_in(files, entry)),
             {{"WQ_NAME", entry.name},
              {words.new_field, plain(entry.main.file, before)},
              {"WQ_WRITE_USEC", std::to_string(outcome.took)}}});
    else if (outcome.kind == Kind::foreign)
        log.write({LOG_NOTICE,
                   words.external,
                   fmt::format("{}: {}holds {}, which an external writer wrote; left as it is", entry.name,
                               words.label, outcome.found()),
                   {{"WQ_NAME", entry.name}, {words.new_field, outcome.text}}});
    else if (outcome.failed())
        log.write(
            {LOG_ERR,
             Event::quarantined,
             fmt::format("{}: {}{}{}: {}", entry.name, words.label, words.failed, baseline, outcome.text),
             {{"WQ_NAME", entry.name}, {"ERRNO", std::to_string(outcome.code)}}});
}

// The entries to put back. From here on the entries on disk allow the baseline. If they cannot be saved, it
// is put back all the same.
std::vector<Restored> announce(OwnedStore& store, bool only_slots) {
    std::vector<Restored> out;
    for (Owned* entry : store.all())
        if (!only_slots || entry->holder == Holder::slot || entry->name == kDefaultTarget)
            out.push_back({entry});
    for (const Restored& item : out) item.entry->announce_baseline();
    (void)store.save();
    return out;
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

Result<std::string> OwnedWriter::read(const Owned& entry, Knob file) const {
    if (file == Knob::scope)
        return files_.read_scope(entry.name, entry.inode).map([](const ScopeFile& now) { return now.word; });
    if (file == Knob::strict) return files_.read_strict(entry.name, entry.inode).map(text_of_strict);
    if (file == Knob::value) return files_.read_value(entry.name, entry.inode);
    if (is_of_lab(file)) return entry.main.claim.empty() ? entry.main.baseline : kAnyText;
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
    if (is_of_lab(file)) return files_.write_value(entry.name, entry.inode, text);
    return files_.write_mask(entry.name, entry.inode, text);
}

// Read, compare, write, read back. The outcome is `done` if the file holds TEXT, or a value that was not
// refused. A strictness is not read back: the kernel stores it as it is.
Outcome OwnedWriter::set(const Owned& entry, const Attribute& attribute, const std::string& text,
                         const How& how) {
    const Knob file = attribute.file;
    const auto now = read(entry, file);
    if (!now) return error_outcome(now.error(), false);
    const bool came = how.seen && !attribute.same(*how.seen, text);
    const bool there = attribute.same(*now, text);
    if (there && came) return foreign(file, text);
    if (there && !how.anew) return {};
    if (attribute.whose(*now) == Whose::foreign) return foreign(file, *now);
    if (const auto written = write(entry, file, text); !written) return error_outcome(written.error(), false);
    if (file == Knob::strict || file == Knob::command || file == Knob::device) return {End::done, true, ""};
    const auto stored = read(entry, file);
    if (!stored) return error_outcome(stored.error(), true);
    if (file == Knob::value && !attribute.same(text, attribute.baseline))
        return {End::done, true, "", 0, file, *stored};
    if (attribute.same(*stored, text)) return {End::done, true, ""};
    if (file != Knob::value && !is_made_of(attribute, *stored, text)) return foreign(file, *stored, true);
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

Outcome OwnedWriter::apply(const std::string& name, const Values& values, const Values& seen, Knob file,
                           bool anew) {
    const Owned* stored = store_.find(name, file);
    return stored == nullptr ? not_announced(name)
                             : set(*stored, seen, values,
                                   {anew, seen.main.empty() ? std::nullopt : std::optional(seen.main)});
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

const FileWords& words_of(const Owned& entry) {
    static constexpr FileWords kScope = {
        "", Event::applied, Event::restored, Event::external, "WQ_SCOPE_OLD", "WQ_SCOPE_NEW", "back to"};
    static constexpr FileWords kMask = {"cpumask ",           Event::mask_set, Event::mask_restored,
                                        Event::mask_external, "WQ_MASK_OLD",   "WQ_MASK_NEW",
                                        "restored to"};
    static constexpr FileWords kCommand = {"", Event::none,  Event::restored, Event::none,
                                           "", "WQ_COMMAND", "undone",        "NOT UNDONE"};
    static constexpr FileWords kDevice = {"", Event::none, Event::restored, Event::none,
                                          "", "WQ_DEVICE", "removed",       "NOT REMOVED"};
    if (entry.main.file == Knob::command) return kCommand;
    if (entry.main.file == Knob::device) return kDevice;
    return entry.is_mask() ? kMask : kScope;
}

// The kernel removes isolated CPUs from the mask of all unbound workqueues when a partition changes, not when
// the mask is written.
std::string let_in(const WorkqueueFiles& files, const Owned& entry) {
    if (!entry.is_mask()) return "";
    const auto now = files.read_mask(entry.name);
    const auto before = CpuSet::parse_mask(entry.main.baseline);
    const CpuSet isolated = now && before ? now->isolated & *before : CpuSet{};
    if (isolated.empty()) return "";
    return fmt::format("; isolated CPUs {} may get unbound work until a cpuset partition changes",
                       isolated.list());
}

RestoreStep restore_step_of(const Owned& entry, Knob file) {
    using enum RestoreStep;
    if (file == Knob::strict) return entry.strict && entry.strict->baseline == "1" ? strict_on : strict_off;
    if (file == Knob::mask) return entry.name == kDefaultMask ? mask_of_all : mask;
    if (file == Knob::device) return device;
    return entry.name == kDefaultTarget ? parameter : scope;
}

unsigned restore_all(WorkqueueFiles& files, OwnedStore& store, Log& log, bool only_slots) {
    OwnedWriter writer(files, store);
    std::vector<Restored> items = announce(store, only_slots);
    std::multimap<RestoreStep, std::pair<Restored*, Knob>> steps;
    for (Restored& item : items)
        for (const Knob file : {item.entry->main.file, Knob::strict})
            steps.emplace(restore_step_of(*item.entry, file), std::pair(&item, file));
    for (const auto& [step, file] : steps) put_back(writer, *file.first, file.second);
    unsigned stayed = 0;
    for (const Restored& item : items) {
        Owned& entry = *item.entry;
        report(files, item, log);
        if (item.outcome.failed()) {
            stayed++;
            look_at(files, entry);
        } else if (entry.must_stay()) {
            entry.release();
        } else {
            store.remove(entry.name, entry.main.file);
        }
    }
    if (const auto saved = store.save(); !saved) log.write({LOG_ERR, Event::none, saved.error().text});
    return stayed;
}

Result<Fd> take_lock(const Paths& paths) {
    std::error_code error;
    std::filesystem::create_directories(paths.run(), error);
    if (error) return fail_errno(paths.run(), error.value());
    Fd fd(::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno(paths.lock(), errno);
    for (int i = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == kLockTries)
            return fail(paths.lock() +
                            ": another process holds the lock (wq-tuned, wq-tuned-restore, "
                            "`wq-tunectl ab` or `bench`)",
                        errno);
        ::usleep(kLockPause);
    }
    return fd;
}

}  // namespace wq
