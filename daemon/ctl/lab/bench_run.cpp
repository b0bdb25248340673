// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_run.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/clock.h"
#include "ctl/complaints.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/bench_left.h"
#include "ctl/lab/bench_page.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/scope_switcher.h"
#include "ctl/lab/session.h"
#include "ctl/render/progress.h"
#include "evidence/verdicts.h"
#include "machine/cpu_files.h"
#include "machine/workqueue_fs.h"

namespace wq::bench {
namespace {

constexpr std::uint64_t kReserve = 128U << 20U;  // bytes, for the devices and other memory needs
constexpr double kSettle = 0.25;                 // fraction of a run's seconds, before the measurement
constexpr double kMega = 1e6;

// A sample of the kernel's counts of the workqueue.
struct Count {
    std::int64_t ns = 0;
    WorkCounters::Traffic traffic;
};

// The scopes to compare, the one in place first. If the pods are not known: all scopes of the kernel.
Result<std::vector<Arm>> arms_of(const PlanLine& line, const KernelInfo& kernel) {
    const auto now = line.target.scope.effective;
    if (line.candidates.size() == 1)
        return fail("all scopes make the same pools on this machine: there is nothing to compare");
    if (!line.candidates.empty() || !now) return ab::arms_to_sweep(line);
    std::vector<Arm> arms{{*now, std::string(name_of(*now)), {}}};
    for (const Scope scope : kernel.scopes)
        if (scope != *now) arms.push_back({scope, std::string(name_of(scope)), {}});
    if (arms.size() < 2) return fail("this kernel has one scope: there is nothing to compare");
    return arms;
}

class Run {
  public:
    Run(const Tools& tools, const Machine& machine, BenchResult& result)
        : tools_(tools),
          machine_(machine),
          result_(result),
          left_(tools.paths),
          files_(tools.paths),
          store_(tools.paths.baseline()) {}

    Status go();

  private:
    Status make();
    Result<Workqueue> find_workqueue() const;
    Status choose_arms();
    Status prepare_switcher();
    Status rounds();
    Result<double> measure(std::size_t arm);
    void count();
    void take_counts(Figures& figures) const;
    void keep_round();
    void show(const ab::Comparison& comparison);
    void conclude(ab::Comparison& comparison);

    const Tools& tools_;
    const Machine& machine_;
    BenchResult& result_;
    LeftStore left_;
    WorkqueueFs files_;
    BaselineStore store_;
    CryptDevice device_;
    Workqueue workqueue_;
    std::vector<Arm> arms_;
    std::optional<ab::ScopeSwitcher> switcher_;  // after prepare_switcher()
    ctl::ProgressLine line_;
    std::vector<Count> counts_;               // at the start and the end of the last measurement
    std::map<std::size_t, Figures> pending_;  // of the current round
};

Status Run::go() {
    return ab::run_guarded({.command = "bench",
                            .on_machine = tools_.paths.root.empty(),
                            .watched = tools_.guarded,
                            .work =
                                [&] {
                                    auto done = make();
                                    if (done) done = choose_arms();
                                    if (done) done = prepare_switcher();
                                    return done ? rounds() : done;
                                },
                            .restore =
                                [&] {
                                    ctl::Complaints log(LOG_NOTICE);
                                    return remove_left(tools_.paths, tools_.devices, log);
                                },
                            .left = "a device or its setting is left"});
}

// Saves the names to disk before it makes the devices.
Status Run::make() {
    const Left left{new_name(), !tools_.devices.has_driver()};
    if (auto saved = left_.save(left); !saved) return saved;
    if (auto loaded = tools_.devices.load_driver(); !loaded) return loaded;
    const auto ram = tools_.devices.make_ram(left.name, kDeviceBytes);
    if (!ram) return tl::unexpected(ram.error());
    auto crypt = tools_.devices.make_crypt(left.name, *ram, kDeviceBytes);
    if (!crypt) return tl::unexpected(crypt.error());
    device_ = std::move(*crypt);
    return {};
}

Result<Workqueue> Run::find_workqueue() const {
    const auto names = files_.names();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names)
        if (name.starts_with("kcryptd-" + device_.number + "-")) return files_.read(name);
    return fail("this kernel does not show the workqueue of dm-crypt in sysfs: 6.10 or later does");
}

Status Run::choose_arms() {
    auto workqueue = find_workqueue();
    if (!workqueue) return tl::unexpected(workqueue.error());
    workqueue_ = *workqueue;
    const PlanLine line = ab::plan_by_cpus(machine_.topology, machine_.kernel, std::move(*workqueue));
    auto arms = arms_of(line, machine_.kernel);
    if (!arms) return tl::unexpected(arms.error());
    arms_ = std::move(*arms);
    for (const Arm& arm : arms_) {
        const Candidate* candidate = candidate_with(line, arm.scope);
        result_.rows.push_back(
            {arm.word, candidate != nullptr ? std::optional(candidate->pools) : std::nullopt, {}, {}});
    }
    return {};
}

// The kernel reuses names of workqueues, so the store may have an entry of an earlier one with this name.
Status Run::prepare_switcher() {
    if (auto opened = ab::open_scope_store(store_, files_, workqueue_.name); !opened) return opened;
    switcher_.emplace(files_, store_, workqueue_, arms_, machine_.kernel);
    return switcher_->begin();
}

// Reads the kernel's counts. After the first error, does not try again.
void Run::count() {
    if (!result_.missing.empty()) return;
    const auto traffic = tools_.counters.traffic();
    if (!traffic) {
        result_.missing = "items/s and CPU per item: " + traffic.error().text;
        return;
    }
    const auto found = traffic->find(workqueue_.name);
    if (found != traffic->end()) counts_.push_back({clock_ns(CLOCK_MONOTONIC), found->second});
}

void Run::take_counts(Figures& figures) const {
    if (counts_.size() != 2) return;
    const Count& first = counts_[0];
    const Count& last = counts_[1];
    const double seconds = static_cast<double>(last.ns - first.ns) / kNsPerSecond;
    if (last.traffic.completed <= first.traffic.completed || seconds <= 0) return;
    const auto items = static_cast<double>(last.traffic.completed - first.traffic.completed);
    figures.items_per_s = items / seconds;
    if (last.traffic.cpu_ns > first.traffic.cpu_ns)
        figures.cpu = static_cast<double>(last.traffic.cpu_ns - first.traffic.cpu_ns) / items;
}

Result<double> Run::measure(std::size_t arm) {
    counts_.clear();
    const Settings& s = result_.settings;
    const auto ran = tools_.load.run({.path = device_.path,
                                      .number = device_.number,
                                      .bytes = kDeviceBytes,
                                      .writers = s.writers,
                                      .depth = s.depth,
                                      .settle = kSettle * s.seconds,
                                      .seconds = s.seconds},
                                     [&] { count(); });
    if (!ran) return tl::unexpected(ran.error());
    Figures figures{.mb_per_s = static_cast<double>(ran->writes * kBlock) / kMega / ran->seconds,
                    .p50 = ran->p50,
                    .p90 = ran->p90,
                    .p99 = ran->p99,
                    .kworkers = static_cast<double>(ab::count_kworkers(tools_.paths))};
    take_counts(figures);
    pending_[arm] = figures;
    return figures.mb_per_s;
}

void Run::keep_round() {
    for (const auto& [arm, figures] : pending_) result_.rows.at(arm).runs.push_back(figures);
    pending_.clear();
}

void Run::show(const ab::Comparison& comparison) {
    std::string text = fmt::format("round {} of {}", comparison.rounds() + 1, result_.settings.rounds);
    for (std::size_t arm = 1; arm < arms_.size() && comparison.rounds() > 0; arm++)
        text += fmt::format("{} {} {}", arm == 1 ? ";" : ",", arms_[arm].word,
                            wq::effect_text(Effect{comparison.effect(arm).percent, {}}));
    line_.show(text);
}

void Run::conclude(ab::Comparison& comparison) {
    result_.rounds = comparison.rounds();
    for (std::size_t arm = 1; arm < arms_.size(); arm++) {
        Row& row = result_.rows.at(arm);
        const Decision decision = comparison.decision(arm);
        row.e_improved = evidence_of(decision.log_better);
        row.e_regressed = evidence_of(decision.log_worse);
        if (comparison.rounds() == 0) continue;
        row.effect = comparison.effect(arm);
        if (const auto& verdict = comparison.verdict(arm)) row.verdict = name_of(verdict->decision.judgement);
    }
}

Status Run::rounds() {
    count();  // loads the BPF programs now, not during a run
    // The first run warms up caches and pools.
    if (auto switched = switcher_->to(0); !switched) return switched;
    if (const auto warm = measure(0); !warm) return tl::unexpected(warm.error());
    pending_.clear();
    JudgeSettings settings;
    // The result names the best of all candidates, so alpha applies to all of them together, in each
    // direction.
    settings.alpha /= static_cast<double>(arms_.size() - 1);
    settings.max_pairs = result_.settings.rounds;
    ab::Comparison comparison(arms_.size(), settings, {"MB/s", true}, true);
    const ab::Edges edges{.switch_to = [&](std::size_t arm) { return switcher_->to(arm); },
                          .measure = [&](std::size_t arm) { return measure(arm); },
                          .conditions =
                              [&] {
                                  return ab::Conditions{time_suspended(), cpu_state(tools_.paths)};
                              },
                          .random = random_number,
                          .progress = [&](const ab::Comparison& c) { show(c); },
                          .counts = [&] { keep_round(); }};
    auto done = ab::run_rounds(comparison, edges);
    line_.end();
    if (done) done = switcher_->check();
    comparison.end(done ? "no more pairs" : "cut off");
    conclude(comparison);
    return done;
}

}  // namespace

std::uint64_t needed_mib(const Settings& settings) {
    const std::uint64_t in_flight = std::uint64_t{settings.writers} * settings.depth * kBlock;
    return (kReserve + 2 * in_flight) >> 20U;
}

Status run_bench(const Tools& tools, const Machine& machine, BenchResult& result) {
    auto done = Run(tools, machine, result).go();
    if (!done) result.stopped = done.error().text;
    return done;
}

}  // namespace wq::bench
