// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"

namespace wq {

// The journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), without libsystemd: the restorer works
// where that cannot be loaded.
std::string journal_datagram(const LogLine& line);
// False: nobody took it, or it is too long for a datagram.
bool send_to_journal(const std::string& datagram);

}  // namespace wq
