// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/lab.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "ctl/command.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "owned/writer.h"

namespace wq::lab {
namespace {

// Prints lines of at least this importance as complaints of this command.
struct Complaints : Log {
    explicit Complaints(int least) : least(least) {}
    void write(const LogLine& line) override {
        if (line.priority <= least) ctl::complain(line.text);
    }
    int least;
};

// Puts back the slots that a killed daemon left.
bool put_slots_back(const Paths& paths, Log& log) {
    OwnedStore store(paths.owned());
    if (const auto loaded = store.load(); !loaded) {
        log.write({LOG_ERR, Event::none, loaded.error().text});
        return false;
    }
    WorkqueueFs files(paths);
    return restore_all(files, store, log, true) == 0;
}

// Runs commands of arms with PROCESSES.
Shell shell_of(const Processes& processes, bool to_the_end) {
    return [&processes, to_the_end](const std::string& c) { return processes.shell(c, to_the_end); };
}

}  // namespace

bool Lab::put_back(Log& log, bool again) const {
    ValueFiles files;
    return lab::put_back(left(), {files, devices, shell_of(processes, true)}, log, again);
}

int in_lab(const Lab& lab, bool only_restore, const std::function<int()>& work) {
    const auto lock = take_lock(lab.paths);
    if (!lock)
        return ctl::complain(
            lock.error().code == EWOULDBLOCK
                ? "wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first"
                : lock.error().text);
    Complaints log(LOG_INFO);
    const bool back = lab.put_back(log, only_restore);
    const bool slots = put_slots_back(lab.paths, log);
    if (only_restore) return back && slots ? ctl::kOk : ctl::kFailure;
    if (back && slots) return work();
    return ctl::complain(
        "settings or devices of an earlier ab, bench or comparison could not be restored or removed");
}

Status run_guarded(const Lab& lab, const std::string& command, const std::string& left,
                   const std::function<Status()>& work) {
    const auto restore = [&] {
        Complaints log(LOG_NOTICE);
        return lab.put_back(log, false);
    };
    Guardian& guardian = lab.processes.guardian;
    if (auto started = guardian.start(restore); !started) return started;
    if (const auto moved = lab.paths.root.empty() ? guardian.into_own_scope(command) : Status{}; !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = work();
    const auto finished = guardian.finish();
    const bool back = finished ? *finished : restore();
    return back || !done ? done : fail(left);
}

Status check_output(const std::string& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
        return fail(path + ": exists and is not a regular file", EEXIST);
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return fail_errno(path + ": its directory", errno);
    if (slash != std::string::npos && slash + 1 == path.size()) return fail(path + ": is a directory");
    return {};
}

Status compare(const Lab& lab, const Subject& subject, Rounds& rounds, unsigned warm_ups,
               const std::function<Result<Figures>(std::size_t arm)>& measure) {
    ValueFiles files;
    const Processes& processes = lab.processes;
    ArmSwitcher switcher({files, shell_of(processes, false), shell_of(processes, true),
                          [&] { return processes.interrupts.check(); }},
                         lab.left(), subject);
    ctl::ProgressLine line;
    auto done = run_rounds(rounds, warm_ups,
                           {.begin = [&] { return switcher.begin(); },
                            .switch_to = [&](std::size_t arm) { return switcher.to(arm); },
                            .measure = measure,
                            .end = [&] { return switcher.check(); },
                            .conditions = [&] { return conditions_of(lab.paths); },
                            .random = random_number,
                            .progress = [&](const std::string& text) { line.show(text); }});
    line.end();
    rounds.end(done ? "no more pairs" : "cut off");
    return done;
}

}  // namespace wq::lab
