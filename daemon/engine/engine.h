// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/journal.h"
#include "engine/baseline.h"
#include "engine/scope_writer.h"
#include "engine/step.h"
#include "evidence/comparison.h"
#include "judge/verdicts.h"
#include "kernel/workqueue_fs.h"
#include "model/kernel_info.h"
#include "model/known_cpus.h"
#include "model/policy.h"
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

// A word that failed for good: not tried again until a reload.
struct Refusal {
    std::string word;
    State as = State::unsupported;  // or quarantined
    std::string reason;
};

// One target, as it was last looked at, with what is known of it beyond the kernel's files.
struct Target {
    Workqueue now;
    Planned plan;                 // made from the baseline; its candidates where mode tune searches
    std::optional<Scope> before;  // what the baseline means
    Step step;                    // what the ledger makes of the plan
    bool on_trial = false;        // in the slot that runs
    std::string held;             // the word before that slot: that it is back after it is no news
    State state = State::unmanaged;
    std::string reason;

    // What the files held when we last looked, to notice other writers where there is no baseline entry yet;
    // where there is one, that says what they hold.
    std::string last_word;
    std::optional<bool> last_strict;
    std::string external_text;  // what an external writer wrote
    std::unique_ptr<Refusal> refused;
    unsigned failures = 0;          // transient ones in a row
    std::optional<bool> opted_out;  // by udev; empty: it has not said yet
    bool ask_udev = true;           // whether it is
    unsigned stuck = 0;             // baselines refused in a row
    std::string stuck_why;          // of the last of them
    bool decided = false;           // apply_wishes() has seen it
    bool external = false;          // somebody else's until a reload finds it otherwise
    bool gone = false;              // found to have vanished while it was written
    bool unread = false;            // some of it could not be read when last looked at: as it was before

    [[nodiscard]] bool refuses(const std::string& word) const { return refused && refused->word == word; }
};

// What comparisons are made of here, besides what the policy says. It is part of their keys.
struct Measures {
    std::vector<ComparedCounter> counters;
    std::string lacks;      // what cannot be counted
    std::string scheduler;  // sched_ext ops in force, cache-aware scheduling
};

// A target, and the arm that it is to hold.
struct Switch {
    std::string name;
    Arm arm;
};
struct Switched {
    Outcome outcome;
    std::uint64_t took = 0;  // us
};

// The state machine between the plan and the files: looks, decides, applies, and puts back.
//
// Everything is driven by reconcile(), which may be called at any time and does nothing where nothing
// changed.
class Tuner {
  public:
    struct Edges {
        WorkqueueFs& files;
        BaselineStore& store;
        Log& log;
        std::function<Result<Topology>()> read_topology;
        // By udev: WQ_TUNED_IGNORE. Empty: it has not processed the workqueue yet, and is about to.
        std::function<std::optional<bool>(const std::string& name)> opted_out;
        const VerdictStore& verdicts;
        std::function<std::int64_t()> now;  // s since 1970
        // What the ledger makes of a plan (engine/candidates.h). Empty: nothing is known, nothing is
        // compared.
        std::function<Step(const StepInput&)> next_step = {};
    };

    Tuner(Edges edges, KernelInfo kernel) : edges_(std::move(edges)), kernel_(std::move(kernel)) {}

    // Takes a policy into use: what was refused, reverted or external is looked at anew.
    void set_policy(Policy policy);
    // Rules of the policy end, or begin again, by their day; the next reconcile() plans by it. Nothing else
    // is looked at anew. NOW: s since 1970.
    void expire(std::int64_t now);
    // Writes nothing but baselines from now on, for WHY; "" lifts it. Policies may say so as well (mode =
    // "observe").
    void observe(std::string why);

    // udev has news of a workqueue: whether it is opted out is asked again.
    void rules_changed() {
        for (auto& [name, target] : targets_) target.ask_udev = true;
    }
    // CPUs came, went, or may have: the topology is read again at the next reconcile().
    void topology_changed() { topology_stale_ = true; }
    // One did, though all may be as it was at the next look.
    void cpu_came_online() { strict_in_doubt_ = true; }
    // Looks at every target, plans, applies.
    void reconcile();
    // Looks only: notices other writers and vanished targets. Writes nothing; record() keeps what was
    // noticed.
    void look();
    void record() { (void)edges_.store.save(); }
    // Puts everything back that is ours, and forgets it.
    void restore_all();
    // Leaves everything in force, but ends the orders: they last until the daemon stops. What was to go back,
    // and could not, is marked for the restorer.
    void keep_all();

    // An operator's orders. The error says what stands against it.
    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);

    // What a slot asks. Between begin_trials() and end_trials() its targets are left to it. Several targets
    // cost one save of the baseline where one does.
    // Whether NAME may go on trial by an operator's order; the error says what stands against it.
    Status may_try(const std::string& name);
    // From here on a process that finds a target puts it back, settings being kept or not. A Status for each
    // of NAMES, in their order.
    std::vector<Status> begin_trials(const std::vector<std::string>& names);
    Status begin_trial(const std::string& name) { return begin_trials({name}).front(); }
    // Writes each arm, in this order, also where it is in place. Every outcome but `done` ends the trial for
    // that target alone. CLOCK: us, for how long a write takes.
    std::vector<Switched> switch_to(const std::vector<Switch>& switches,
                                    const std::function<std::uint64_t()>& clock);
    Outcome switch_to(const std::string& name, const Arm& arm);
    // Back to what policy and ledger say; nothing for those that are not on trial.
    void end_trials(const std::vector<std::string>& names);
    void end_trial(const std::string& name) { end_trials({name}); }
    // Why no pair is measured, shown where a target waits for one.
    void explain_waiting(std::string why) { waiting_why_ = std::move(why); }
    // The targets whose dense comparisons are measured now, slot by slot: these are in state `trial`.
    void set_compared(std::set<std::string> names) { compared_ = std::move(names); }
    [[nodiscard]] VerdictKey key_for(const Workqueue& target, const Arms& arms) const;
    // FROM_POLICY: the reference is what we kept, not what the kernel had.
    [[nodiscard]] LedgerKey ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const;
    // The comparisons that the ledger has may be others by now: steps are made again, and applied.
    void step_all();
    struct Glance {
        std::string cpus;      // as key_for() has them
        std::string word;      // its scope
        bool foreign = false;  // the word is not the one that we wrote last
    };
    // NAME's files as they are now; empty where they cannot be read.
    std::optional<Glance> glance(const std::string& name);
    void measure_by(Measures measures) { measures_ = std::move(measures); }
    [[nodiscard]] const Measures& measures() const { return measures_; }
    [[nodiscard]] const CpuSet& online() const { return last_online_; }

    [[nodiscard]] const std::map<std::string, Target>& targets() const { return targets_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    // Why nothing is written now; empty where the policy is followed.
    [[nodiscard]] std::string observing() const;
    // A CPU came online since the start, or the machine was suspended: the kernel then let the workers of
    // strict workqueues run anywhere (kernel/workqueue.c, restore_unbound_workers_cpumask()), and no file
    // says so.
    [[nodiscard]] bool strict_in_doubt() const { return strict_in_doubt_; }
    // The kernel stored the beginning of a scope's name for the name, since the start.
    [[nodiscard]] bool names_cut_short() const { return names_cut_short_; }
    // Why nothing new is set while the pods are not known; empty where they are.
    [[nodiscard]] const std::string& pods_unknown() const { return pods_unknown_; }
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const;
    [[nodiscard]] std::string summary() const;  // one line, for STATUS=
    // The target as it would be without us: plans are made from there, so that what we did does not argue for
    // itself.
    [[nodiscard]] Workqueue as_before_us(const Target& target) const;
    // What TARGET had before us, or nullptr where we have no hand in it.
    [[nodiscard]] const BaselineEntry* baseline_of(const std::string& name) const {
        return edges_.store.find(name);
    }
    [[nodiscard]] unsigned writes() const { return edges_.files.writes(); }  // to /sys, since the start
    // Since the start: tries to set a target, or to put it back, that the kernel refused or could not do.
    [[nodiscard]] unsigned write_errors() const { return write_errors_; }
    // us that the writes to /sys took, since the start.
    [[nodiscard]] std::uint64_t write_time() const { return write_time_; }
    [[nodiscard]] unsigned order_reverts() const { return order_reverts_; }    // settings, since the start
    [[nodiscard]] unsigned topology_reads() const { return topology_reads_; }  // since the start
    [[nodiscard]] const std::string& topology() const { return fingerprint_; }
    [[nodiscard]] const Topology& known_topology() const { return known_.topology(); }

  private:
    // What a target shall hold.
    struct Wish {
        std::optional<std::string> word = {};  // empty: its baseline
        std::optional<bool> strict = {};
        bool hands_off = false;  // nothing is to be written, whatever it holds
    };

    void show(Target& target);
    void refresh_topology();
    void refresh_targets();
    void refresh_target(const std::string& name, const CpuSet& unbound_mask);
    void ask_udev(Target& target);
    void keep_unread(Target& target, const Workqueue* seen);
    void notice_foreign(Target& target, std::optional<bool> strict);
    void notice_change(Target& target);
    [[nodiscard]] bool minds(const Target& target, bool strict) const;
    [[nodiscard]] bool default_is_held(const Target& target) const;
    [[nodiscard]] std::vector<Workqueue> targets_before_us() const;
    void plan_targets();
    void take(PlanLine line);
    void make_step(Target& target);
    [[nodiscard]] bool has_no_effect(const Target& target) const;
    Outcome found_foreign(Target& target, const Arm& arm);
    Outcome may_switch(const Switch& to);
    Outcome write_arm(const Target& target, BaselineEntry& entry, const Arm& arm);
    void end_switch(Target& target, const Arm& arm, const Outcome& outcome);
    [[nodiscard]] const std::string& partition_of(const CpuSet& effective, Scope scope) const;
    [[nodiscard]] static bool is_refused(const Target& target);
    Wish wish_for(Target& target);
    Wish wish_by_plan(Target& target);
    Wish wish_by_step(Target& target);
    Wish wish_for_arm(Target& target, State state, const Arm& arm);
    void apply_wishes();
    BaselineEntry& entry_for(const Workqueue& target);
    void announce(const Target& target, const Wish& wish);
    void carry_out(Target& target, const Wish& wish);
    void look_again(Target& target);
    void put_back(Target& target);
    [[nodiscard]] bool goes_back(const Target& target, const Wish& wish) const;
    static void show_stuck(Target& target);
    void settle_failure(Target& target, const std::string& word, const Outcome& outcome);
    [[nodiscard]] static bool is_so(const Target& target, const Wish& wish);
    [[nodiscard]] ScopeFile plan_scope_of(const Target& target, const std::string& word) const;
    void forget(const std::string& name);
    void say_once(int priority, Event event, const std::string& text,
                  std::vector<std::pair<std::string, std::string>> fields = {});
    void set_external(Target& target, const std::string& text);
    void take_failure(Target& target, const Outcome& outcome);
    void note_others(const Target& target, const Wish& wish, Outcome& outcome);
    void refuse(Target& target, State as, const std::string& word, const std::string& reason, int code);
    Result<Target*> find_for_order(const std::string& name);
    [[nodiscard]] bool holds_ours(const Target& target) const;
    void log(int priority, Event event, const Target& target, const std::string& text,
             std::vector<std::pair<std::string, std::string>> more = {});

    Edges edges_;
    KernelInfo kernel_;
    Policy policy_;
    KnownCpus known_;
    CpuSet last_online_;
    std::string fingerprint_;  // of the known CPUs
    Measures measures_;
    mutable std::map<std::pair<Scope, std::string>, std::string> partitions_;  // by scope and CPUs, as text
    bool strict_in_doubt_ = false;
    bool names_cut_short_ = false;
    unsigned doubts_ = 0;  // topologies read in a row that came with warnings
    bool topology_stale_ = true;
    std::string observe_why_;
    std::string waiting_why_ = "waiting for a trial";
    std::string pods_unknown_;
    std::string unsaved_;  // why baselines cannot be saved, where they last could not
    std::map<std::string, Target> targets_;
    std::set<std::string> compared_;
    unsigned topology_reads_ = 0;
    unsigned write_errors_ = 0;
    std::uint64_t write_time_ = 0;  // us
    unsigned order_reverts_ = 0;
    std::set<std::string> said_;           // what say_once() has said
    static constexpr unsigned kTries = 3;  // of a transient failure, a baseline, a doubt
    static constexpr std::size_t kMaxSaid = 1000;
};

}  // namespace wq
