// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/lab.h"

#include <syslog.h>

#include <cerrno>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/command.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"

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

}  // namespace

bool Lab::put_back(Log& log, bool slots) const {
    OwnedStore store = slots ? OwnedStore(paths.owned()) : OwnedStore(paths.lab(), OwnedStore::Of::lab);
    if (const auto loaded = store.load(); !loaded) {
        log.write({LOG_ERR, Event::none, loaded.error().text});
        return false;
    }
    LabFiles files(paths, processes, devices);
    return restore_all(files, store, log, slots) == 0 && (slots || !exists(paths.lab()));
}

int in_lab(const Lab& lab, bool only_restore, const std::function<int()>& work) {
    const auto lock = take_lock(lab.paths);
    if (!lock)
        return ctl::complain(
            lock.error().code == EWOULDBLOCK
                ? "wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first"
                : lock.error().text);
    Complaints log(LOG_INFO);
    const bool back = lab.put_back(log);
    const bool slots = lab.put_back(log, true);
    if (only_restore) return back && slots ? ctl::kOk : ctl::kFailure;
    if (back && slots) return work();
    return ctl::complain(
        "settings or devices of an earlier ab, bench or comparison could not be restored or removed");
}

Status run_guarded(const Lab& lab, const std::string& command, const std::function<Status()>& work) {
    const auto restore = [&] {
        Complaints log(LOG_NOTICE);
        return lab.put_back(log);
    };
    Guardian& guardian = lab.processes.guardian;
    if (auto started = guardian.start(restore); !started) return started;
    if (const auto moved = lab.paths.root.empty() ? guardian.into_own_scope(command) : Status{}; !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = work();
    const auto finished = guardian.finish();
    const bool back = finished ? *finished : restore();
    const std::string left = "not put back; `wq-tunectl " + command + " --restore` tries again";
    if (!back && !done) ctl::complain(left);
    return back || !done ? done : fail(left);
}

Status compare(const Lab& lab, OwnedStore& store, const Subject& subject, Rounds& rounds, unsigned warm_ups,
               const std::function<Result<Figures>(std::size_t arm)>& measure) {
    LabFiles files(lab.paths, lab.processes, lab.devices);
    ArmSwitcher switcher(files, store, lab.processes, subject);
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
