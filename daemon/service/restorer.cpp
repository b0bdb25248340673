// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/restorer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/journal.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "owned/writer.h"
#include "service/metrics_file.h"
#include "state/state_file.h"

namespace wq {
namespace {

std::string path_of(const Paths& paths, Mark mark) {
    return paths.run() + (mark == Mark::keep ? "/keep" : "/restart");
}

bool is_marked(const Paths& paths, Mark mark) {
    struct stat st {};
    return ::lstat(path_of(paths, mark).c_str(), &st) == 0;
}

// The mark is valid for one end of the daemon. Removes it, because it must not exist if the next start fails.
bool take_restart(const Paths& paths, Log& log) {
    const char* result = ::getenv("SERVICE_RESULT");
    const bool marked = is_marked(paths, Mark::restart);
    if (const auto gone = set_mark(paths, Mark::restart, false); !gone)
        log.write({LOG_WARNING, Event::none, gone.error().text});
    return marked && result != nullptr && std::string_view(result) == "success";
}

Status put_back(const Paths& paths, bool all, Log& log) {
    OwnedStore store(paths.owned());
    if (auto loaded = store.load(); !loaded) return loaded;
    WorkqueueFs files(paths);
    if (const unsigned stayed = restore_all(files, store, log, !all && keeps_settings(paths)); stayed > 0)
        return fail(fmt::format("settings not restored: {}", stayed));
    return {};
}

// Does the work without the lock: a disk that does not answer would block the next process that needs the
// lock. If a daemon started meanwhile, it has taken over the file and its record, and writes the file again.
class WriteUnlocked : public RecordWriter {
  public:
    WriteUnlocked(const Paths& paths, Fd lock) : paths_(paths), lock_(std::move(lock)) {}

    void put(const std::string& /*name*/, Work work, Done done) override {
        lock_ = Fd();
        const Status status = work();
        if (auto again = take_lock(paths_)) lock_ = std::move(*again);
        if (lock_) done(status);
    }

  private:
    Paths paths_;
    Fd lock_;
};

}  // namespace

Status set_mark(const Paths& paths, Mark mark, bool there) {
    return there ? replace_file(path_of(paths, mark), "") : remove_file(path_of(paths, mark));
}

std::string why_disabled(const Paths& paths) {
    struct stat st {};
    const std::string path = paths.disabled();
    if (::lstat(path.c_str(), &st) == 0) return path + " exists";
    if (errno == ENOENT || errno == ENOTDIR) return "";
    return fail_errno(path, errno).value().text;
}

bool keeps_settings(const Paths& paths) {
    return is_marked(paths, Mark::keep) && why_disabled(paths).empty();
}

std::string why_switched_off(const KernelInfo& kernel, const Paths& paths) {
    return kernel.switched_off ? "wq_tuned=off on the kernel command line" : why_disabled(paths);
}

Status restore_after_exit(const RestoreOptions& options) {
    const Paths paths{options.root};
    Journal log;
    auto lock = take_lock(paths);
    if (!lock && lock.error().code == EWOULDBLOCK && !options.all) return {};  // the lock holder restores
    if (!lock) return tl::unexpected(lock.error());
    const bool restarting = take_restart(paths, log) && !options.all;
    const std::string state = restarting ? "restarting" : "absent";
    if (const auto told = publish_file(paths.status(), R"({"daemon":{"state":")" + state + "\"}}\n"); !told)
        log.write({LOG_WARNING, Event::none, told.error().text});
    if (restarting) return {};
    Status done = put_back(paths, options.all, log);
    // Last, because restoring the settings is more important.
    WriteUnlocked writer(paths, std::move(*lock));
    MetricsFile metrics(paths, log, writer);
    metrics.recall();
    metrics.remove();
    return done;
}

}  // namespace wq
