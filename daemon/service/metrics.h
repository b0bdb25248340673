// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "base/journal.h"
#include "bpf/work_counters.h"
#include "evidence/verdicts.h"
#include "experiment/experiment.h"
#include "machine/host_facts.h"
#include "machine/paths.h"
#include "service/health.h"
#include "targets/engine.h"

namespace wq {

// Sums up the items of per-CPU workqueues that start on isolated CPUs, from samples of the kernel's own
// counts. The first sample is only the start value. So is the first sample after the set of isolated CPUs
// changed; the sums until then are kept.
class IsolatedItems {
  public:
    // Adds a sample. NOW: the kernel's counts on CPUS, the isolated CPUs.
    void add(const CpuSet& cpus, const std::vector<StartedWork>& now);
    // The isolated CPUs at the last sample.
    [[nodiscard]] const CpuSet& cpus() const { return cpus_; }
    // The sums by name, of existing workqueues that ever had work there. Workqueues of the same name are
    // added up.
    [[nodiscard]] std::map<std::string, std::uint64_t> items() const;

  private:
    struct Known {
        std::uint64_t counted = 0;  // the kernel's count at the last sample
        std::uint64_t items = 0;    // the sum
    };
    using Key = std::pair<std::uint64_t, std::string>;  // a later workqueue may get the same address

    CpuSet cpus_;
    std::map<Key, Known> known_;
    std::map<std::string, std::uint64_t> gone_;  // by name
};

// Samples the work that starts on isolated CPUs, for the metrics. All constructor arguments must outlive this
// object.
class IsolatedWatch {
  public:
    IsolatedWatch(const Paths& paths, Log& log) : paths_(paths), log_(log) {}

    // Call it at each tick, but not while windows are measured. It walks all cgroups and all workqueues, so
    // it takes a sample only once a minute. It misses nothing in between, because the kernel counts.
    void tick(WorkCounters& counters);
    [[nodiscard]] const IsolatedItems& items() const { return items_; }

  private:
    static constexpr unsigned kTicks = 4;  // from one sample to the next

    const Paths& paths_;
    Log& log_;
    IsolatedItems items_;
    unsigned ticks_ = 0;
    std::string error_;  // last logged reason why there is no metric
};

// The policy in use, for comparing hosts.
struct PolicyFacts {
    std::string hash;         // policy_hash(); "" if no policy could be read yet
    std::string sources;      // sources_hash(); likewise
    std::size_t files = 0;    // number of its files
    bool broken = false;      // the policy on disk is broken; another one may be in use
    std::size_t expired = 0;  // number of expired rules
};

struct MetricsInput {
    const Engine& engine;
    const Experiment& experiment;
    const VerdictStore& verdicts;
    std::string state;  // running, paused (by a kill switch or an order) or observing
    PolicyFacts policy;
    FleetMachine machine;
    std::int64_t started = 0;  // s since 1970
    const IsolatedItems& isolated;
    const Health& health;
};

// Limits for the series of single targets, of verdicts and of work on isolated CPUs, and for the comparisons
// whose evidence is exported. They protect a fleet's monitoring from hosts with thousands of workqueues. A
// comparison has 16 series for each counter and guard.
inline constexpr std::size_t kMostTargetSeries = 200;
inline constexpr std::size_t kMostVerdictSeries = 100;
inline constexpr std::size_t kMostComparisons = 25;
inline constexpr std::size_t kMostIsolatedSeries = 100;

// Returns all counts of wq-tuned in the text format of Prometheus (version 0.0.4). Has no side effects. Names
// that are not UTF-8 get replacement characters. wq-tuned(8) describes each metric; a test compares the two.
std::string metrics_text(const MetricsInput& input);

}  // namespace wq
