// SPDX-License-Identifier: LGPL-2.1-or-later
// The throughput of the judge: pairs, whole trials, and trials read from a recording.
#include <benchmark/benchmark.h>

#include <random>

#include "ctl/commands/recording.h"

namespace wq::test {
namespace {

// Noise of 3% in each window.
std::vector<PairValues> noise(std::size_t pairs) {
    std::mt19937 random(1);
    std::normal_distribution<double> value(100, 3);
    std::vector<PairValues> out(pairs);
    for (PairValues& pair : out) pair = {value(random), value(random)};
    return out;
}

// Judges the pairs after each one, with an alpha under which noise is not decided early.
void judge(const std::vector<PairValues>& recorded) {
    Comparison comparison(std::vector<ComparedCounter>{{"latency"}});
    for (const PairValues& pair : recorded) {
        comparison.add({pair});
        benchmark::DoNotOptimize(comparison.decide({1e-9, 1, true}));
    }
}

void pairs(benchmark::State& state) {
    const auto recorded = noise(1000);
    for (auto _ : state) judge(recorded);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(recorded.size()));
}

void trials(benchmark::State& state) {
    const auto recorded = noise(16);
    for (auto _ : state) judge(recorded);
    state.SetItemsProcessed(state.iterations());
}

void recording(benchmark::State& state) {
    const auto recorded = noise(16);
    std::string text = "trial,pair,arm,counter,value\n";
    for (int trial = 0; trial < 100; trial++)
        for (std::size_t pair = 0; pair < recorded.size(); pair++) {
            const std::string start = "t" + std::to_string(trial) + "," + std::to_string(pair) + ",";
            const PairValues& at = recorded[pair];
            text += start + "baseline,latency," + std::to_string(at.reference) + "\n" + start +
                    "candidate,latency," + std::to_string(at.candidate) + "\n";
        }
    for (auto _ : state) {
        const auto trials = read_recording(text);
        if (!trials || trials->size() != 100) state.SkipWithError("not read");
    }
    state.SetItemsProcessed(state.iterations() * 100);
}

BENCHMARK(pairs)->Name("judge/pairs");
BENCHMARK(trials)->Name("judge/trials");
BENCHMARK(recording)->Name("judge/recorded-trials");

}  // namespace
}  // namespace wq::test
