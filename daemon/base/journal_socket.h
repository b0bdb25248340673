// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"

namespace wq {

// The journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) without libsystemd, because the
// restorer must also work where libsystemd cannot be loaded.
std::string journal_datagram(const LogLine& line);
// Sends DATAGRAM to the socket PATH. Never waits: if the journal's queue is full, the datagram is dropped and
// the result is true. If the caller waited for a hung journal, it could not restore a scope, and stderr leads
// to the same journal. Returns false if nobody receives on PATH, or if DATAGRAM is too long for a datagram.
bool send_to_journal(const std::string& datagram, const std::string& path = "/run/systemd/journal/socket");

}  // namespace wq
