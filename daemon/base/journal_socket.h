// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"

namespace wq {

// The journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) without libsystemd, because the
// restorer must also work where libsystemd cannot be loaded.
std::string journal_datagram(const LogLine& line);
// Returns false if nobody received it, or if it is too long for a datagram.
bool send_to_journal(const std::string& datagram);

}  // namespace wq
