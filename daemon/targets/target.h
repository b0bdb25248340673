// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "machine/workqueue.h"
#include "owned/scope_writer.h"
#include "plan/plan.h"
#include "targets/step.h"

namespace wq {

// A target that vanished has no state: it is forgotten.
enum class State : std::uint8_t {
    unmanaged,
    leave,
    as_planned,
    waiting,
    comparing,
    set,
    kept,
    reverted,
    pinned,
    external,
    unsupported,
    quarantined
};
inline constexpr State kAllStates[] = {State::unmanaged, State::leave,       State::as_planned,
                                       State::waiting,   State::comparing,   State::set,
                                       State::kept,      State::reverted,    State::pinned,
                                       State::external,  State::unsupported, State::quarantined};
std::string_view name_of(State state);

// State and reason that are shown for a target.
struct Shown {
    State state = State::unmanaged;
    std::string reason;
};

// A word that failed for good: it is not tried again until a reload.
struct Refusal {
    std::string word;
    State as = State::unsupported;  // or quarantined
    std::string reason;
};

// A target as in the kernel's files and in udev. Inventory fills this.
struct Listed {
    Workqueue now;
    std::optional<bool> opted_out;  // by udev; empty: not known yet
    bool ask_udev = true;           // the answer of udev may have changed
    bool unread = false;            // a part could not be read at the last look, and is older

    // Whether it is not known yet if a udev rule opts the target out.
    [[nodiscard]] bool waits_for_udev() const;
};

// A target, with all that the engine knows about it besides its baseline entry.
struct Target : Listed, Shown {
    Planned plan;                 // from the baseline; with candidates only if the rule says `auto`
    std::optional<Scope> before;  // the scope that the baseline's word means
    Step step;                    // from plan and ledger

    bool in_slot = false;  // in the running slot
    std::string held;      // the word before that slot: writing it back is logged only as debug
    // What an external writer wrote, a word or a strictness. The target is left alone until its baseline is
    // back and the policy is reloaded.
    std::optional<std::string> external;

    // What the files held at the last look, to notice external writers if there is no baseline entry yet. If
    // there is one, it says what they hold.
    std::string last_word;
    std::optional<bool> last_strict;

    std::vector<Refusal> refused;
    unsigned failures = 0;  // consecutive transient failures
    unsigned stuck = 0;     // consecutive failures to put the baseline back
    std::string stuck_why;  // text of the last of them
    bool gone = false;      // it vanished while it was written

    void show(Shown what) { static_cast<Shown&>(*this) = std::move(what); }
    // nullptr if WORD was not refused.
    [[nodiscard]] const Refusal* refusal_of(const std::string& word) const {
        const auto found = std::ranges::find(refused, word, &Refusal::word);
        return found == refused.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool refuses(const std::string& word) const { return refusal_of(word) != nullptr; }
    [[nodiscard]] Seen seen() const { return last_word.empty() ? Seen{} : Seen{now.scope.word, now.strict}; }
    // The baseline could not be put back kTries times: this is tried again only after a reload, or at the
    // end.
    [[nodiscard]] bool is_stuck() const { return stuck >= kTries; }

    static constexpr unsigned kTries = 3;  // for a transient failure, and for putting a baseline back
};

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
