// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "targets/targets.h"

namespace wq {

// A target, and the arm to write to it.
struct Switch {
    std::string name;
    Arm arm;
};
struct Switched {
    Outcome outcome;
    std::uint64_t took = 0;  // us
};

// Writes (Reconciler) what is decided: as policy and ledger say, by orders, and for slots. reconcile() looks,
// plans, decides and writes. It may be called at any time, and writes nothing if nothing changed.
class Engine : public Targets {
  public:
    Engine(Edges edges, KernelInfo kernel) : Targets(std::move(edges), std::move(kernel)) {}

    // Puts a policy into use. Forgets refusals, orders to revert and external writers, so that these targets
    // are decided again.
    void set_policy(Policy policy);
    // Updates which rules have expired at NOW (s since 1970); a rule can also become valid again. The next
    // reconcile() uses the result. Everything else stays as it is.
    void expire(std::int64_t now) { policy_.expire(now); }
    // From now on writes only baselines; WHY is the reason, "" ends this. A policy can ask for the same (mode
    // = "observe").
    void observe(std::string why) { observe_why_ = std::move(why); }
    void name_only(NamedOnly what) { named_only_ = std::move(what); }
    void measure_by(Measures measures) { keys_.measure_by(std::move(measures)); }
    // Call after an event of the machine: the next reconcile() or look() takes CHANGE into account.
    void changed(Udev::Change change);

    // Looks at every target, plans, writes.
    void reconcile();
    // Looks only: notices external writers and vanished targets. Writes nothing.
    void look();
    // Plans, decides and writes again, with what the last look found. Call if the ledger changed, or if other
    // comparisons of it apply now.
    void step_all();
    // Puts back all that is ours, and removes the entries.
    void restore_all();
    // Leaves all settings in force, but ends the orders: an order ends when the daemon stops.
    void keep_all();

    // An operator's orders. They are in the entries of their targets, so they survive a restart. Each is
    // carried out at once. Error: why this was not possible; after pin() and unpin() the earlier order then
    // stays in force.
    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);       // empty: all targets
    [[nodiscard]] unsigned reverts() const { return reverts_; }  // of settings, since the start

    // For slots. Between enter_slot() and leave_slot() the engine leaves the slot's targets to the slot. A
    // call for several targets saves the baseline as often as a call for one.
    // Looks at NAME. Error: why it may not take part in a slot.
    Status may_try(const std::string& name);
    // Marks NAMES as in a slot, on disk: from now on the restorer puts them back, even if settings are kept.
    // Returns a Status for each of NAMES, in the same order.
    std::vector<Status> enter_slot(const std::vector<std::string>& names);
    // Writes each arm, in this order, even if it is in place already. Any outcome but `done` ends the trial,
    // for that target alone. CLOCK: us, to measure how long a write takes.
    std::vector<Switched> switch_to(const std::vector<Switch>& switches,
                                    const std::function<std::uint64_t()>& clock);
    // Returns NAMES to what policy and ledger decide. Ignores names that are no target.
    void leave_slot(const std::vector<std::string>& names);
    struct Glance {
        std::string cpus;      // as in VerdictRecord
        std::string word;      // the word of its scope
        bool foreign = false;  // the word is not the one that we wrote last
    };
    // Reads NAME's files now; empty if they cannot be read.
    std::optional<Glance> glance(const std::string& name);

  private:
    void write();
    Result<Target*> look_for(const std::string& name, Use use);
    Outcome may_switch(const Switch& to);

    unsigned reverts_ = 0;
};

}  // namespace wq
