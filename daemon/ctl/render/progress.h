// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "ctl/render/terminal.h"

namespace wq::ctl {

// The string KEY of OBJECT, a part of a status document; OTHERWISE if it has none.
std::string text_in(const nlohmann::json& object, const char* key, const char* otherwise = "");

// A comparison as text. TRIAL: a target's `comparison` in a status document, not null. NOW: s since 1970.

// The e-values as odds: "12 to 1 that smt is better than cache".
std::string odds_text(const nlohmann::json& trial);
// "12 to 1 that smt is better than cache, latency 3.1% better (1.2 to 5) in 23 of 64 pairs; next pair in 4
// min".
std::string progress_text(const nlohmann::json& trial, std::int64_t now);

// All comparisons of a status document: "5 of 14 targets: 3 improved, 1 undecided, 1 regressed; next pair in
// 4 min". "" if STATUS has no experiments (no daemon), or if the daemon observes and nothing was compared.
std::string comparisons_text(const nlohmann::json& status, std::int64_t now);

// Progress on stderr: one line per change. On a terminal that is not dumb, it rewrites one line and disables
// wrapping, because it could not erase the rows above the cursor.
class ProgressLine {
  public:
    void show(const std::string& text) {
        if (text == shown_) return;
        say(terminal_ ? "\r\033[K\033[?7l" + text + "\033[?7h" : text + "\n");
        std::fflush(stderr);
        shown_ = text;
    }
    void end() const {
        if (terminal_ && !shown_.empty()) say("\n");
    }

  private:
    bool terminal_ = ::isatty(STDERR_FILENO) == 1 && !terminal_is_dumb();
    std::string shown_;
};

}  // namespace wq::ctl
