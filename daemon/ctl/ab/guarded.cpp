// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/guarded.h"

#include <cerrno>

#include "ctl/ab/own_scope.h"
#include "ctl/machine.h"
#include "engine/lock.h"

namespace wq::ab {

Result<Fd> lock_out_daemon(const Paths& paths) {
    auto lock = take_lock(paths);
    if (!lock && lock.error().code == EWOULDBLOCK)
        return fail("wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first",
                    EWOULDBLOCK);
    return lock;
}

Status run_guarded(const Guarded& what) {
    auto guardian = Guardian::start(what.restore);
    if (!guardian) return tl::unexpected(guardian.error());
    what.watched(&*guardian);
    if (const auto moved = what.on_machine ? into_own_scope(guardian->pid(), what.command) : Status{}; !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = what.work();
    what.watched(nullptr);
    const auto finished = guardian->finish();
    const bool back = finished ? *finished : what.restore();
    return back || !done ? done : fail(what.left);
}

}  // namespace wq::ab
