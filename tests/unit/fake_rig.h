// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>

#include "engine/candidates.h"
#include "engine/engine.h"
#include "fake_kernel.h"
#include "fake_log.h"
#include "fake_machine.h"

namespace wq {

inline void PrintTo(State state, std::ostream* out) {
    *out << name_of(state);
}

}  // namespace wq

namespace wq::test {

// Writes ARM alone, as a slot of one target does.
inline Outcome switch_to(Engine& engine, const std::string& name, const Arm& arm) {
    return engine.switch_to({{name, arm}}, [] { return std::uint64_t{0}; }).front().outcome;
}

// An Engine between a temporary tree and fakes. The machine has one LLC of 12 cores and two threads, and the
// kernel no cache_shard: `auto` means smt. Two workqueues, kcryptd and writeback, are on `default (cache)`.
class Rig : public testing::Test {
  protected:
    explicit Rig(KernelInfo kernel = kernel_612());

    // The default scope is managed too.
    static Policy managed();
    // Only kcryptd is planned, so that counts are of one target.
    static Policy kcryptd_only(const ScopeWish& wish = {});
    // A policy with its rules changed, taken into use.
    void use(const Policy& policy);
    void reconcile(int times);

    // The daemon is gone, in whatever way, and another one starts on what it left.
    void restart();
    // The daemon is told of CPUs, and looks.
    void see(const Topology& topology);
    void set_scope(const std::string& name, const std::string& text);  // by somebody else
    void recreate(const std::string& name);  // closed, and opened under the same name
    // By a rule that asks for strict workers kcryptd is on trial, and the candidate, "smt strict", is in
    // place.
    Arms put_strict_candidate_in_place();

    [[nodiscard]] std::string scope(
        const std::string& name) const;  // what the file says, without the newline
    [[nodiscard]] std::string strict(const std::string& name) const;
    [[nodiscard]] std::string default_scope() const;
    [[nodiscard]] const Target& target(const std::string& name) const { return engine_->targets().at(name); }
    [[nodiscard]] State state(const std::string& name) const { return target(name).state; }
    [[nodiscard]] std::string reason(const std::string& name) const { return target(name).reason; }
    [[nodiscard]] std::size_t asked() const { return files_->asked.size(); }  // writes, failed ones included
    [[nodiscard]] std::map<std::string, BaselineEntry> on_disk() const;

    TempTree tree_{kernel_tree(
        {workqueue("kcryptd", {.cpumask = "ffffff"}), workqueue("writeback", {.cpumask = "ffffff"})}, "cache",
        "", "ffffff")};
    KernelInfo kernel_;
    Topology topology_ = machine({.cores = 12, .threads = 2});
    std::string topology_error_;
    std::set<std::string> opted_out_;
    std::set<std::string> unprocessed_;  // by udev
    FakeLog log_;
    std::unique_ptr<FakeKernel> files_;
    std::unique_ptr<BaselineStore> store_;
    std::unique_ptr<VerdictStore> verdicts_;
    std::int64_t wall_ = 1'700'000'000;  // s since 1970
    Ledger ledger_;                      // what steps are made of, where no experiment runs
    std::function<Step(const StepInput&)> next_step_ = [this](const StepInput& in) {
        return next_step(in, {[this](const LedgerKey& key) { return ledger_.find(key); }});
    };
    std::unique_ptr<Engine> engine_;
};

}  // namespace wq::test
