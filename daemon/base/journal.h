// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <syslog.h>
#include <string>
#include <utility>
#include <vector>

namespace wq {

// Kinds of messages in the journal's catalog (conf/wq-tuned.catalog). Each has a stable MESSAGE_ID.
enum class Event {
    none,  // a plain line, no MESSAGE_ID
    applied,
    restored,
    external,
    unsupported,
    quarantined,
    pods_unknown,
    policy_broken,
    policy_loaded,
    baseline_broken,
    comparison_begun,
    comparison_cut_off,
    verdict,
    verdicts_broken,
    metrics_failed,
    mask_set,
    mask_restored,
    mask_external,
};
const char* message_id(Event event);

struct LogLine {
    int priority;  // LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG
    Event event = Event::none;
    std::string text;
    // Additional journal fields: "WQ_NAME", "WQ_SCOPE_OLD", "WQ_SCOPE_NEW", "ERRNO", ...
    std::vector<std::pair<std::string, std::string>> fields = {};
};

// Destination of log lines. Tests record them.
class Log {
  public:
    virtual ~Log() = default;
    virtual void write(const LogLine& line) = 0;
};

// Writes to the journal if stderr is connected to it, else to stderr.
class Journal : public Log {
  public:
    void write(const LogLine& line) override;
    // Lines with a higher number (lower importance) are dropped.
    [[nodiscard]] int max_level() const { return max_level_; }
    void set_max_level(int priority) { max_level_ = priority; }
    static bool is_connected();

  private:
    int max_level_ = LOG_INFO;
};

// The journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) without libsystemd, because the
// restorer must also work where libsystemd cannot be loaded.
std::string journal_datagram(const LogLine& line);
// Sends DATAGRAM to the socket PATH. Never waits: if the journal's queue is full, the datagram is dropped and
// the result is true. If the caller waited for a hung journal, it could not restore a scope, and stderr leads
// to the same journal. Returns false if nobody receives on PATH, or if DATAGRAM is too long for a datagram.
bool send_to_journal(const std::string& datagram, const std::string& path = "/run/systemd/journal/socket");

}  // namespace wq
