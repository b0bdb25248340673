// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>

#include "../unit/fake_counters.h"
#include "../unit/fake_log.h"
#include "../unit/fake_machine.h"
#include "base/file.h"
#include "edge.h"
#include "experiment/experiment.h"

namespace wq::faults {

class Host;

// The daemon as service/service.cpp builds it, on the tree of HOST, with the clock and the load of HOST.
class Daemon {
  public:
    explicit Daemon(Host& host);

    void reconcile();
    void tick();  // of the watchdog, 15 s after the one before
    void run();   // up to the next verdict
    void stop(bool restarting);

    [[nodiscard]] test::TargetParts& parts() { return *parts_; }
    void record() { (void)store_.save(); }
    [[nodiscard]] Experiment& experiment() { return *experiment_; }
    [[nodiscard]] bool is_blind() const { return blind_; }  // owned.json could not be read
    // Why it did not start: the error with which its process would exit.
    [[nodiscard]] const std::string& error() const { return error_; }

  private:
    void build();
    Host& host_;
    std::string error_;
    bool blind_ = false;
    Fd lock_;
    WorkqueueFs files_;
    OwnedStore store_;
    VerdictStore verdicts_;
    WriteAtOnce record_;
    LedgerFile ledger_;
    OrderBook book_;
    std::unique_ptr<test::TargetParts> parts_;
    std::unique_ptr<Experiment> experiment_;
};

struct HostOptions {
    bool prefixes = true;  // true: scope names match by prefix, as in 6.12; false: as in 7.2
    KernelInfo kernel = test::kernel_612();
    Policy policy;
};

// A machine with one LLC of 12 cores with two threads each, so `auto` means smt. Its workqueues are kcryptd,
// nvme-wq and writeback, all on `default (cache)`.
class Host {
  public:
    explicit Host(HostOptions options);

    // Actions of systemd, the clock, an operator and an external writer. Those that need a running daemon do
    // nothing without one.
    void start();
    std::string restore();  // ExecStopPost=; the caller heals the edge first. Returns the error, or ""
    void stop(bool restarting = false);
    void ticks(unsigned n);
    void pass(std::uint64_t time);  // us
    // Two ticks, and all pairs up to a verdict. Only NAME has work; its candidate costs FACTOR times the
    // baseline.
    void trial(const std::string& name, double factor);
    void pin(const std::string& name, const std::string& scope);
    void unpin(const std::string& name);
    void pause(const std::string& why);  // as /etc/wq-tuned/disabled does; "" resumes
    void write(const std::string& name, const std::string& word);  // by an external writer

    [[nodiscard]] std::string word(const std::string& name) const;
    [[nodiscard]] std::string strict(const std::string& name) const;

    HostOptions options;
    test::TempTree tree;
    Edge edge;
    test::FakeCounters counters;
    test::FakeLog log;
    Topology topology = test::machine({.cores = 12, .threads = 2});
    std::map<std::string, std::string> foreign;  // what an external writer wrote, by target
    std::uint64_t now = 1'000'000'000;           // us
    std::int64_t wall = 1'700'000'000;           // s
    std::uint64_t coin = 1;
    std::string busy;                                              // the target that has work
    std::map<std::string, std::map<unsigned, std::string>> begun;  // the word in place at a window's start
    std::unique_ptr<Daemon> daemon;
};

extern const std::vector<std::string> kTargets;

}  // namespace wq::faults
