// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>

#include "fake_kernel.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "targets/step.h"

namespace wq {

inline void PrintTo(State state, std::ostream* out) {
    *out << name_of(state);
}

}  // namespace wq

namespace wq::test {

// Writes ARM for one target, like a slot with one target.
inline Outcome switch_to(TargetParts& parts, const std::string& name, const Arm& arm) {
    return parts.slots.switch_to({{name, arm}}, [] { return std::uint64_t{0}; }).front();
}

// TargetParts on a temporary tree and fakes. The machine has one LLC of 12 cores with two threads, and the
// kernel has no cache_shard, so `auto` means smt. kcryptd and writeback are on `default (cache)`.
class Rig : public testing::Test {
  protected:
    explicit Rig(KernelInfo kernel = kernel_612());

    // A policy that also manages the default scope.
    static Policy managed();
    // A policy that plans only kcryptd, so that counts are those of one target.
    static Policy kcryptd_only(const ScopeWish& wish = planned());
    // Sets POLICY and reconciles.
    void use(const Policy& policy);
    void reconcile(int times);

    [[nodiscard]] const Ledger& ledger() const { return ledger_->ledger(); }
    // The daemon ends without cleanup, and another one starts with the files that it left.
    void restart();
    // Changes the CPUs to those of TOPOLOGY, notifies the engine, and reconciles.
    void see(const Topology& topology);
    void set_scope(const std::string& name, const std::string& text);  // by an external writer
    void add_workqueue(const std::string& name) {
        tree_.add(Dir("sys/devices/virtual/workqueue", {workqueue(name, {.cpumask = "ffffff"})}));
    }
    void no_state_folder();                  // nothing can be saved until this file is removed
    void recreate(const std::string& name);  // removed and created again with the same name
    // Starts a trial of kcryptd by a rule with strict = true, and puts the candidate, "smt strict", in place.
    Arms put_strict_candidate_in_place();

    [[nodiscard]] std::string scope(
        const std::string& name) const;  // content of the file without the newline
    [[nodiscard]] std::string strict(const std::string& name) const;
    [[nodiscard]] std::string default_scope() const;
    [[nodiscard]] const Target& target(const std::string& name) const {
        return parts_->targets.all().at(name);
    }
    [[nodiscard]] State state(const std::string& name) const { return target(name).state; }
    [[nodiscard]] std::string reason(const std::string& name) const { return target(name).reason; }
    [[nodiscard]] std::size_t asked() const { return files_->asked.size(); }  // writes, including failed ones
    [[nodiscard]] OwnedEntries on_disk() const { return saved_entries(tree_); }

    TempTree tree_{kernel_tree(
        {workqueue("kcryptd", {.cpumask = "ffffff"}), workqueue("writeback", {.cpumask = "ffffff"})}, "cache",
        "", "ffffff")};
    KernelInfo kernel_;
    Topology topology_ = machine({.cores = 12, .threads = 2});
    std::string topology_error_;
    std::set<std::string> opted_out_;
    std::set<std::string> unprocessed_;  // not processed by udev
    FakeLog log_;
    std::unique_ptr<FakeKernel> files_;
    std::unique_ptr<OwnedStore> store_;
    std::unique_ptr<VerdictStore> verdicts_;
    std::int64_t wall_ = 1'700'000'000;  // s since 1970
    OrderBook book_;
    WriteAtOnce at_once_;
    RecordWriter* record_ = &at_once_;
    std::unique_ptr<LedgerFile> ledger_;  // empty without an experiment
    HostCpus cpus_{CpuSet::range(0, 23), {}};
    std::unique_ptr<TargetParts> parts_;
};

}  // namespace wq::test
