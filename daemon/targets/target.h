// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "machine/workqueue.h"
#include "owned/writer.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "targets/step.h"

namespace wq {

// Whether udev opts a workqueue out (WQ_TUNED_IGNORE). Empty: not known yet, ask again.
using OptedOut = std::function<std::optional<bool>(const std::string& workqueue)>;

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
inline constexpr std::string_view kStateNames[] = {"unmanaged", "leave",    "as-planned",  "waiting",
                                                   "comparing", "set",      "kept",        "reverted",
                                                   "pinned",    "external", "unsupported", "quarantined"};
static_assert(std::size(kStateNames) == static_cast<std::size_t>(State::quarantined) + 1);
inline std::string_view name_of(State state) {
    return kStateNames[static_cast<std::size_t>(state)];
}

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

// What the daemon knows about the files of one entry: of a target or of a mask.
struct Managed : Shown {
    bool gone = false;            // it vanished while it was written
    OwnedStore* store = nullptr;  // has the entry
    // What an external writer wrote, as plain(). The files are left alone until a reload.
    std::optional<std::string> external;
    std::string held;  // the word before the running slot: writing it back is logged only as debug
    // What the files held at the last look, to notice external writers while there is no entry. Without a
    // text: not known.
    Values last;
    std::vector<Refusal> refused;
    unsigned failures = 0;  // consecutive transient failures
    unsigned stuck = 0;     // consecutive failures to put the baseline back
    std::string stuck_why;  // text of the last of them

    virtual ~Managed() = default;
    [[nodiscard]] virtual const std::string& name() const = 0;
    [[nodiscard]] virtual Values values() const = 0;    // in the files, as far as we know
    [[nodiscard]] virtual Owned entry_now() const = 0;  // an entry with the values as baseline
    [[nodiscard]] virtual Knob file() const { return Knob::scope; }
    [[nodiscard]] virtual bool is_managed() const = 0;  // whether the policy wants to set it
    [[nodiscard]] virtual std::optional<bool> wanted_strict() const { return {}; }
    virtual void see(const Look& look) = 0;        // takes what the files hold
    virtual void wrote(const Values& values) = 0;  // we wrote VALUES

    // nullptr: we have written nothing to the files, and no order or external writer is known.
    [[nodiscard]] Owned* entry() const { return store->find(name(), file()); }
    // Creates the entry if there is none, with the current values as the baseline.
    Owned& make_entry();
    // Whether the files hold something of ours, as of the last look.
    [[nodiscard]] bool holds_ours() const;
    // Whether their strictness may be ours.
    [[nodiscard]] bool owns_strict() const;
    // Call after the files were read (STRICT: empty if not). Reduces the claim to what is in place. Returns
    // what an external writer wrote, as plain(), if that is new.
    std::optional<std::string> notice(std::optional<bool> strict);

    void show(Shown what) { static_cast<Shown&>(*this) = std::move(what); }
    // nullptr if WORD was not refused.
    [[nodiscard]] const Refusal* refusal_of(const std::string& word) const {
        const auto found = std::ranges::find(refused, word, &Refusal::word);
        return found == refused.end() ? nullptr : &*found;
    }
    [[nodiscard]] Values seen() const { return last.main.empty() ? Values{} : values(); }
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const { return failures > 0 && failures < kTries; }
    // The baseline could not be put back kTries times: tried again only after a reload, or at the end.
    [[nodiscard]] bool is_stuck() const { return stuck >= kTries; }
    [[nodiscard]] bool tries_to_go_back() const { return stuck > 0 && !is_stuck(); }
    // Call after a reload.
    void start_over() {
        external.reset();
        last = {};
        refused.clear();
        failures = stuck = 0;
    }

    static constexpr unsigned kTries = 3;  // for a transient failure, and for putting a baseline back

  private:
    std::optional<std::string> notice_change();
};

// A target: a workqueue, or @default.
struct Target : Managed {
    Workqueue now;                  // as in the kernel's files and in udev
    std::optional<bool> opted_out;  // by udev; empty: not known yet
    bool ask_udev = true;           // the answer of udev may have changed
    bool unread = false;            // a part could not be read at the last look, and is older
    bool in_slot = false;           // in the running slot
    std::optional<Scope> before;    // the scope that the baseline's word means
    Planned plan;                   // from the baseline; with candidates only if the rule says `auto`
    Step step;                      // from plan and ledger

    [[nodiscard]] const std::string& name() const override { return now.name; }
    [[nodiscard]] Values values() const override { return {now.scope.word, now.strict}; }
    [[nodiscard]] Owned entry_now() const override { return entry_of(now); }
    [[nodiscard]] bool is_managed() const override {
        return plan.finding == Finding::in_place || plan.finding == Finding::change;
    }
    [[nodiscard]] std::optional<bool> wanted_strict() const override {
        return is_managed() ? plan.strict : std::nullopt;
    }
    void see(const Look& look) override;
    void wrote(const Values& values) override;

    [[nodiscard]] Holder holder() const;  // who decides what it holds now
    // An order, or its end. SCOPE: of a pin. The next write carries it out.
    void hold(Holder by, const std::string& scope = "");
    // It with the values of its baseline: our own writes must not influence plans.
    [[nodiscard]] Workqueue before_us() const;
};

// Writes to the journal: lines about targets, and lines that are logged only once.
class TargetLog {
  public:
    using Fields = std::vector<std::pair<std::string, std::string>>;
    explicit TargetLog(Log& log) : log_(log) {}

    void write(int priority, Event event, const std::string& name, const std::string& text, Fields more) {
        more.emplace_back("WQ_NAME", name);
        log_.write({priority, event, name + ": " + text, std::move(more)});
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

// What all targets of one pass have in common.
struct Circumstances {
    std::string observing = {};     // why nothing is written; "" if the policy is followed
    std::string pods_unknown = {};  // why nothing new is set; "" if the pods are known
    Waiting waiting = {};
    friend bool operator==(const Circumstances&, const Circumstances&) = default;
};

// What is to be done about one target.
struct Wish : Shown {
    std::optional<std::string> word = {};  // empty: its baseline
    std::optional<bool> strict = {};       // empty: unchanged
    bool hands_off = false;                // nothing is written, whatever the target holds

    [[nodiscard]] const Shown& shown() const { return *this; }
    // Whether the files of ITEM have to change, according to the last look.
    [[nodiscard]] bool sets(const Managed& item) const;
    // Whether the wish is a word to write, and not the baseline.
    [[nodiscard]] bool wants() const { return word && !hands_off; }
};

// Decides what TARGET should hold, and which state and reason are shown. Pure.
Wish decide(const Target& target, const Circumstances& all);

// State and reason of a target that an order holds, whose entry is ENTRY.
Shown held_by_order(const Owned& entry);
// State and reason of ITEM while it is left to an external writer.
Shown left_to_writer(const Managed& item);

// Leaves ITEM to the external writer who wrote TEXT, until a reload. If the other one of word and strictness
// is ours, it is still put back at the end.
void leave_to_writer(Managed& item, const std::string& text, TargetLog& log);

// A wish for the baseline, and one to write nothing.
Wish baseline(State state, std::string reason);
Wish hands_off(Shown shown);

// State and reason of ITEM as it was found, before WISH is carried out. UNSAVED: Reconciler::unsaved(). Pure.
Shown as_found(const Managed& item, const Wish& wish, const std::string& unsaved);

}  // namespace wq
