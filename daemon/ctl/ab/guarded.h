// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "ctl/ab/guardian.h"
#include "kernel/paths.h"

namespace wq::ab {

// Takes the lock against the daemon, and against another ab or bench. Errors: EWOULDBLOCK if one of them has
// it; errno.
Result<Fd> lock_out_daemon(const Paths& paths);

// What `ab` or `bench` does between its first change of the machine and its last.
struct Guarded {
    std::string command;                           // "ab" or "bench"
    bool on_machine = true;                        // not in the tree of a test
    std::function<void(const Guardian*)> watched;  // gets the guardian, and nullptr when it is about to end
    std::function<Status()> work;
    std::function<bool()> restore;  // returns whether nothing is left
    std::string left;               // the error if something is
};

// Does the work, and restores whatever happens: the guardian does that, or this process if the guardian was
// killed. The error is that of the work, if it failed.
Status run_guarded(const Guarded& what);

}  // namespace wq::ab
