// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "engine/target.h"

namespace wq {

// Writes to the journal: lines about targets, and lines that are logged only once.
class TargetLog {
  public:
    using Fields = std::vector<std::pair<std::string, std::string>>;
    explicit TargetLog(Log& log) : log_(log) {}

    void write(int priority, Event event, const Target& target, const std::string& text, Fields more = {}) {
        more.emplace_back("WQ_NAME", target.now.name);
        log_.write({priority, event, target.now.name + ": " + text, std::move(more)});
    }
    // For messages that apply to many targets, or at every tick: logs each once between two reloads.
    void write_once(int priority, Event event, const std::string& text, Fields fields = {}) {
        if (said_.size() < kMaxSaid && said_.insert(text).second)
            log_.write({priority, event, text, std::move(fields)});
    }
    void start_over() { said_.clear(); }

  private:
    static constexpr std::size_t kMaxSaid = 1000;
    Log& log_;
    std::set<std::string> said_;
};

}  // namespace wq
