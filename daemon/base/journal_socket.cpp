// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/journal_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>

#include "base/file.h"

namespace wq {
namespace {

// Field format for any value: the name, the length as 64-bit little-endian number, the bytes.
void add_field(std::string& datagram, const std::string& name, const std::string& value) {
    datagram += name + '\n';
    for (unsigned shift = 0; shift < 64; shift += 8)
        datagram += static_cast<char>(static_cast<std::uint64_t>(value.size()) >> shift);
    datagram += value + '\n';
}

}  // namespace

std::string journal_datagram(const LogLine& line) {
    std::string out;
    add_field(out, "MESSAGE", line.text);
    add_field(out, "PRIORITY", std::to_string(line.priority));
    add_field(out, "SYSLOG_IDENTIFIER", "wq-tuned");
    if (line.event != Event::none) add_field(out, "MESSAGE_ID", message_id(line.event));
    for (const auto& [name, value] : line.fields) add_field(out, name, value);
    return out;
}

bool send_to_journal(const std::string& datagram, const std::string& path) {
    static const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (path.size() >= sizeof to.sun_path) return false;
    path.copy(to.sun_path, path.size());
    const ssize_t sent = ::sendto(socket.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
    return sent >= 0 || errno == EAGAIN;
}

}  // namespace wq
