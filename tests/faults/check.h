// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "host.h"

namespace wq::faults {

// Each function returns what is wrong, one fault per line, or "". Call them while the edge rests.

// Each file must hold its baseline, a word that is ours according to owned.json on disk, or the word of an
// external writer. Then the state after a kill at this moment can be restored.
std::string wrong_on_disk(const Host& host);
// The daemon's status of each target must agree with its files. (Not checked if the daemon could not read
// owned.json: then it reports that, and writes nothing.)
std::string wrong_in_status(Host& host);
// After a restore: each file must hold its baseline, or the word of an external writer; no entry may be left;
// the verdicts can be read.
std::string wrong_at_the_end(const Host& host);

}  // namespace wq::faults
