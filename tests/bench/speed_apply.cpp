// SPDX-License-Identifier: LGPL-2.1-or-later
// Sets 1,000 targets with the daemon's own Engine and with bare loops, and looks at them, on a tree in
// memory. A write to a real kernel takes far longer than one to memory, so the overhead of the daemon shows
// most here.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/file.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "speed_bare.h"
#include "targets/engine.h"

namespace wq::test {
namespace {

constexpr unsigned kTargets = 1000;

// The log lines are made and dropped: writing the journal is not measured.
class NoLog : public Log {
  public:
    void write(const LogLine& line) override { benchmark::DoNotOptimize(&line); }
};

class Host {
  public:
    Host() {
        std::vector<Entry> entries;
        for (unsigned i = 0; i < kTargets; i++) {
            folders_.push_back(fmt::format("kcryptd-254:{}-1", i));
            entries.push_back(workqueue(folders_.back(), {.cpumask = "ffffff"}));
        }
        const auto tree = kernel_tree(std::move(entries), "cache", "", "ffffff");
        for (const Entry& entry : tree) tree_.add(entry);
    }

    // The state after boot: no target was ever written.
    void reset() {
        for (const std::string& name : folders_) tree_.write(wq_path(name), "default (cache)\n");
        tree_.remove("run/wq-tuned/owned.json");
        engine_.reset();
        files_.emplace(paths_);
        store_.emplace(paths_.owned());
        (void)store_->load();
        engine_.emplace(Engine::Edges{*files_, *store_, log_, [this] { return Result<Topology>(topology_); },
                                      [](const std::string&) { return false; }, verdicts_,
                                      [] { return std::int64_t{0}; }},
                        kernel_612());
        engine_->set_policy(rule_for_all());
    }

    Engine& engine() { return *engine_; }
    [[nodiscard]] std::string parent() const { return paths_.workqueues(); }
    [[nodiscard]] const std::vector<std::string>& folders() const { return folders_; }
    [[nodiscard]] std::string baseline_path() const { return paths_.owned(); }
    [[nodiscard]] std::string baseline() const { return *read_file(paths_.owned(), 16U << 20U); }
    [[nodiscard]] bool all_set() const {
        return std::all_of(folders_.begin(), folders_.end(),
                           [&](const std::string& name) { return tree_.read(wq_path(name)) == "smt\n"; });
    }

  private:
    TempTree tree_;
    Paths paths_{tree_.root()};
    std::vector<std::string> folders_;
    Topology topology_ = machine({.cores = 12, .threads = 2});
    NoLog log_;
    VerdictStore verdicts_{paths_.verdicts()};
    std::optional<WorkqueueFs> files_;
    std::optional<OwnedStore> store_;
    std::optional<Engine> engine_;
};

template <class Work>
void apply(benchmark::State& state, Work work) {
    Host host;
    host.reset();
    host.engine().reconcile();
    const std::string saved = host.baseline();
    for (auto _ : state) {
        state.PauseTiming();
        host.reset();
        state.ResumeTiming();
        work(host, saved);
    }
    if (!host.all_set()) state.SkipWithError("not all targets are set");
    state.SetItemsProcessed(state.iterations() * kTargets);
}

void by_daemon(benchmark::State& state) {
    apply(state, [](Host& host, const std::string&) { host.engine().reconcile(); });
}

void by_same_calls(benchmark::State& state) {
    apply(state, [](Host& host, const std::string& saved) {
        bare_same(host.parent(), host.folders(), saved, host.baseline_path());
    });
}

BENCHMARK(by_daemon)->Name("apply/daemon");
BENCHMARK(by_same_calls)->Name("apply/same-calls");

}  // namespace
}  // namespace wq::test
