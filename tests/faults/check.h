// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "host.h"

namespace wq::faults {

// What is wrong, a line each; "" if nothing is. To be called while the edge rests.

// Each file holds its baseline, a word that baseline.json on disk has as ours, or what an external writer
// wrote: what a kill at this moment would leave can be restored.
std::string wrong_on_disk(const Host& host);
// What the daemon says of each target, asked now, is what its files hold. (One that could not read
// baseline.json says that, and writes nothing.)
std::string wrong_in_status(Host& host);
// After a restore: each file holds its baseline, or what an external writer wrote; no entry is left; the
// verdicts can be read.
std::string wrong_at_the_end(const Host& host);

}  // namespace wq::faults
