// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/scope_writer.h"
#include "engine/step.h"
#include "model/workqueue.h"
#include "plan/plan.h"

namespace wq {

// `gone` is never shown: a target that vanished is forgotten.
enum class State : std::uint8_t {
    unmanaged,
    leave,
    as_planned,
    waiting,
    trial,
    applied,
    kept,
    reverted,
    pinned,
    external,
    unsupported,
    quarantined
};
inline constexpr State kAllStates[] = {State::unmanaged, State::leave,       State::as_planned,
                                       State::waiting,   State::trial,       State::applied,
                                       State::kept,      State::reverted,    State::pinned,
                                       State::external,  State::unsupported, State::quarantined};
std::string_view name_of(State state);

// What is shown of a target.
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

// A target as the kernel's files and udev have it. Inventory fills this.
struct Listed {
    Workqueue now;
    std::optional<bool> opted_out;  // by udev; empty: it has not said yet
    bool ask_udev = true;           // udev may have something new to say
    bool unread = false;            // a part could not be read at the last look, and is as it was before

    // Whether it is not known yet if a rule of udev sets it aside.
    [[nodiscard]] bool waits_for_udev() const;
};

// A target, with all that the engine knows about it besides its baseline entry.
struct Target : Listed, Shown {
    Planned plan;                 // from the baseline; with candidates only where mode tune searches
    std::optional<Scope> before;  // what the baseline means
    Step step;                    // what the ledger makes of the plan

    bool in_slot = false;  // in the slot that runs
    std::string held;      // the word before that slot: its return afterwards is not news
    // What an external writer wrote, a word or a strictness. The target is left to it until its baseline
    // is there again and the policy is reloaded.
    std::optional<std::string> external;

    // What the files held at the last look, to notice external writers where there is no baseline entry yet.
    // Where there is one, the entry says what they hold.
    std::string last_word;
    std::optional<bool> last_strict;

    std::vector<Refusal> refused;
    unsigned failures = 0;  // transient ones in a row
    unsigned stuck = 0;     // baselines refused in a row
    std::string stuck_why;  // of the last of them
    bool gone = false;      // found to have vanished while it was written

    void show(Shown what) { static_cast<Shown&>(*this) = std::move(what); }
    // nullptr where WORD was not refused.
    [[nodiscard]] const Refusal* refusal_of(const std::string& word) const {
        const auto found = std::ranges::find(refused, word, &Refusal::word);
        return found == refused.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool refuses(const std::string& word) const { return refusal_of(word) != nullptr; }
    [[nodiscard]] Seen seen() const { return last_word.empty() ? Seen{} : Seen{now.scope.word, now.strict}; }
    // The kernel refused to take the baseline back too often: this waits for a reload, or the end.
    [[nodiscard]] bool is_stuck() const { return stuck >= kTries; }

    static constexpr unsigned kTries = 3;  // of a transient failure, and of a baseline
};

}  // namespace wq
