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

#include "owned/scope_writer.h"

namespace wq {
namespace {

// Logs the outcome, but not if the target was at its baseline already.
void report(const BaselineEntry& entry, const Outcome& outcome, std::uint64_t took, Log& log) {
    using Kind = Outcome::Kind;
    if (outcome.kind == Kind::done && outcome.wrote)
        log.write({LOG_INFO,
                   Event::restored,
                   fmt::format("{}: back to '{}'", entry.name, entry.scope),
                   {{"WQ_NAME", entry.name},
                    {"WQ_SCOPE_NEW", entry.scope},
                    {"WQ_WRITE_USEC", std::to_string(took)}}});
    else if (outcome.kind == Kind::foreign)
        log.write({LOG_NOTICE,
                   Event::external,
                   fmt::format("{}: holds '{}', which an external writer wrote; left as it is", entry.name,
                               outcome.text),
                   {{"WQ_NAME", entry.name}, {"WQ_SCOPE_NEW", outcome.text}}});
    else if (outcome.failed())
        log.write({LOG_ERR,
                   Event::quarantined,
                   fmt::format("{}: not put back to '{}': {}", entry.name, entry.scope, outcome.text),
                   {{"WQ_NAME", entry.name}, {"ERRNO", std::to_string(outcome.code)}}});
}

// Returns the entries to put back. From here on the entries on disk allow the baseline. If they cannot be
// saved, it is put back all the same.
std::vector<std::string> announce(BaselineStore& store, bool only_slots) {
    std::vector<std::string> out;
    for (const auto& [name, entry] : store.entries())
        if (!only_slots || entry.holder == Holder::slot || name == kDefaultTarget) out.push_back(name);
    for (const std::string& name : out) store.find(name)->announce_baseline();
    (void)store.save();
    return out;
}

}  // namespace

unsigned restore_entries(ScopeFiles& files, BaselineStore& store, Log& log, bool only_slots) {
    ScopeWriter writer(files, store);
    unsigned stayed = 0;
    for (const std::string& name : announce(store, only_slots)) {
        BaselineEntry& entry = *store.find(name);
        std::uint64_t took = 0;
        const Outcome outcome = timed(took, [&] { return put_back_with_retries(writer, name); });
        report(entry, outcome, took, log);
        if (outcome.failed()) {
            stayed++;
            (void)look_at(files, entry);
        } else if (entry.why.empty()) {
            store.remove(name);
        } else {
            entry.release();  // the reason to stay at the baseline outlives the daemon
        }
    }
    if (const auto saved = store.save(); !saved) log.write({LOG_ERR, Event::none, saved.error().text});
    return stayed;
}

namespace {

constexpr int kLockTries = 20;
constexpr useconds_t kLockPause = 100'000;  // us

}  // namespace

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
