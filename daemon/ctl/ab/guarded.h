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

// The work of `ab` or `bench`, from its first change of the machine to its last.
struct Guarded {
    std::string command;                           // "ab" or "bench"
    bool on_machine = true;                        // false for a test's tree
    std::function<void(const Guardian*)> watched;  // gets the guardian, and nullptr when it is about to end
    std::function<Status()> work;
    std::function<bool()> restore;  // returns whether nothing is left
    std::string left;               // text of the error if something is left
};

// Does the work and then always restores: in the guardian, or in this process if the guardian was killed.
// Error: that of the work; if the work succeeded, WHAT.left if something is left.
Status run_guarded(const Guarded& what);

}  // namespace wq::ab
