// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/journal.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"

namespace wq {

// systemd sets JOURNAL_STREAM=DEVICE:INODE to the stream that it connected. We compare it with stderr,
// because a shell may have redirected stderr.
bool Journal::is_connected() {
    const char* stream = ::getenv("JOURNAL_STREAM");
    struct stat st = {};
    if (stream == nullptr || ::fstat(STDERR_FILENO, &st) != 0) return false;
    return fmt::format("{}:{}", static_cast<unsigned long>(st.st_dev), st.st_ino) == stream;
}

// Random numbers, which must never change, in the order of Event.
const char* message_id(Event event) {
    static constexpr std::array kIds = {
        "",                                  // none
        "f887b053ec2f4684928457e69598bd0c",  // applied
        "2f8fec0c460140d0bcee5e705550124c",  // restored
        "34b04f0aa3c1420ba52a63ab7e5b89ae",  // external
        "cd9ae711b9814256b59d3e96ccb54415",  // unsupported
        "6ed98fe7a32941abb3047babe76c5f1e",  // quarantined
        "d75145f5888a48a2b7962f608428eb9e",  // pods_unknown
        "589d1264198e4a5ebe60cdde8b52c107",  // policy_broken
        "3a5f7ce8356248e595d98392b8d0e2ad",  // policy_loaded
        "f1c03d547f074d718a2a08a21045be51",  // baseline_broken
        "575fd024588e4efb8850d8d96b649744",  // comparison_begun
        "6e9d66801bff4da188e8a252bd80e252",  // comparison_cut_off
        "4885ad00593a4746804849483c8ed1e2",  // verdict
        "d8ac01476b4f44dcb68cdd738c6ea166",  // verdicts_broken
        "c63c5dd0082743fb9e68aec8b75c5b32",  // metrics_failed
        "966b0fb33fe14bff929d664acb0a309e",  // mask_set
        "9b2a2b7f3f9f44ffb3025f39a646f4df",  // mask_restored
        "ca8d44e1eee34840b5c05779be2e3ca0",  // mask_external
    };
    static_assert(kIds.size() == static_cast<std::size_t>(Event::mask_external) + 1);
    return kIds.at(static_cast<std::size_t>(event));
}

// A line that is too long for a datagram goes to the journal as text on stderr.
void Journal::write(const LogLine& line) {
    static const bool journal = is_connected();
    if (line.priority > max_level_) return;
    if (journal && send_to_journal(journal_datagram(line))) return;
    const std::string prefix = journal ? fmt::format("<{}>", line.priority) : "";
    std::fputs((prefix + line.text + "\n").c_str(), stderr);
}

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
