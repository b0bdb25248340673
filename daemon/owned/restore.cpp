// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <syslog.h>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace wq {
namespace {

constexpr unsigned kTries = 3;  // after transient errors, because there is no later
constexpr int kLockTries = 20;
constexpr useconds_t kLockPause = 100'000;  // us

struct Restored {
    Owned* entry;
    Outcome outcome = {};
    std::uint64_t took = 0;  // us
};

enum class Step { strict_off, parameter, mask, mask_of_all, scope, strict_on };
constexpr Step kOrder[] = {Step::strict_off,  Step::parameter, Step::mask,
                           Step::mask_of_all, Step::scope,     Step::strict_on};

Step step_of(const Owned& entry, Knob file) {
    switch (file) {
        case Knob::strict:
            return entry.strict && entry.strict->baseline == "1" ? Step::strict_on : Step::strict_off;
        case Knob::mask:
            return entry.name == kDefaultMask ? Step::mask_of_all : Step::mask;
        case Knob::scope:
            break;
    }
    return entry.name == kDefaultTarget ? Step::parameter : Step::scope;
}

void put_back(OwnedWriter& writer, Restored& item, Knob file) {
    Outcome outcome;
    for (unsigned i = 0; i < kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++)
        outcome = timed(item.took, [&] { return writer.put_back(*item.entry, file); });
    item.outcome = worse_of(item.outcome, outcome);
}

// Logs the outcome, but not if the target was at its baseline already.
void report(const WorkqueueFiles& files, const Restored& item, Log& log) {
    using Kind = Outcome::Kind;
    const Owned& entry = *item.entry;
    const Outcome& outcome = item.outcome;
    const FileWords& words = words_of(entry);
    const std::string before = entry.main.baseline;
    const std::string baseline = quoted(entry.main.file, before);
    if (outcome.kind == Kind::done && outcome.wrote)
        log.write({LOG_INFO,
                   words.restored,
                   fmt::format("{}: {}{} {}{}", entry.name, words.label, words.back, baseline,
                               let_in(files, entry)),
                   {{"WQ_NAME", entry.name},
                    {words.new_field, plain(entry.main.file, before)},
                    {"WQ_WRITE_USEC", std::to_string(item.took)}}});
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
             fmt::format("{}: {}not put back to {}: {}", entry.name, words.label, baseline, outcome.text),
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

const FileWords& words_of(const Owned& entry) {
    static constexpr FileWords kScope = {
        "", Event::applied, Event::restored, Event::external, "WQ_SCOPE_OLD", "WQ_SCOPE_NEW", "back to"};
    static constexpr FileWords kMask = {"cpumask ",           Event::mask_set, Event::mask_restored,
                                        Event::mask_external, "WQ_MASK_OLD",   "WQ_MASK_NEW",
                                        "restored to"};
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

unsigned restore_all(WorkqueueFiles& files, OwnedStore& store, Log& log, bool only_slots) {
    OwnedWriter writer(files, store);
    std::vector<Restored> items = announce(store, only_slots);
    for (const Step step : kOrder)
        for (Restored& item : items)
            for (const Knob file : {item.entry->main.file, Knob::strict})
                if (step_of(*item.entry, file) == step) put_back(writer, item, file);
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
