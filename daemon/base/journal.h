// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <syslog.h>

#include <string>
#include <utility>
#include <vector>

namespace wq {

// What happened, as the journal's catalog knows it (conf/wq-tuned.catalog). Each kind has a stable
// MESSAGE_ID.
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
    trial_begun,
    trial_cut_off,
    verdict,
    verdicts_broken,
    metrics_failed,
};
const char* message_id(Event event);

struct LogLine {
    int priority;  // LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG
    Event event = Event::none;
    std::string text;
    // Further fields: "WQ_NAME", "WQ_SCOPE_OLD", "WQ_SCOPE_NEW", "ERRNO", ...
    std::vector<std::pair<std::string, std::string>> fields = {};
};

// Where lines go; a test records them.
class Log {
  public:
    virtual ~Log() = default;
    virtual void write(const LogLine& line) = 0;
};

// The journal where stderr is connected to it, else stderr.
class Journal : public Log {
  public:
    void write(const LogLine& line) override;
    // Lines of a higher number (lower importance) than this are dropped.
    [[nodiscard]] int max_level() const { return max_level_; }
    void set_max_level(int priority) { max_level_ = priority; }
    static bool is_connected();

  private:
    int max_level_ = LOG_INFO;
};

}  // namespace wq
