// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plan/pods.h"

namespace wq {
namespace {

// One LLC of CORES x THREADS CPUs with shuffled numbers.
Topology shuffled(unsigned cores, unsigned threads, std::mt19937& random) {
    std::vector<unsigned> numbers(std::size_t{cores} * threads);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::ranges::shuffle(numbers, random);
    Topology topology;
    for (unsigned core = 0; core < cores; core++) {
        CpuSet set;
        for (unsigned thread = 0; thread < threads; thread++) set.add(numbers[core * threads + thread]);
        topology.cores.push_back(std::move(set));
    }
    std::ranges::sort(topology.cores, {}, &CpuSet::first);
    topology.online = CpuSet::range(0, cores * threads - 1);
    topology.llcs = {{topology.online, std::nullopt}};
    return topology;
}

// Returns the CPUs of the first n cores, for every n. A shard must be the difference of two of these sets:
// the next cores by leader, with all their siblings, so that no CPU is missing or in two shards.
std::vector<CpuSet> growing(const std::vector<CpuSet>& cores) {
    std::vector<CpuSet> sums(1);
    for (const auto& core : cores) sums.push_back(sums.back() | core);
    return sums;
}

void check(const std::vector<CpuSet>& shards, const std::vector<CpuSet>& sums, unsigned size) {
    const std::size_t cores = sums.size() - 1;
    const std::size_t wanted = std::max<std::size_t>((cores + size / 2) / size, 1);
    ASSERT_EQ(shards.size(), wanted);
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted; i++) {
        // ceil((cores - i) / wanted): sizes differ by one at most, the larger ones first.
        const std::size_t end = next + (cores - i + wanted - 1) / wanted;
        ASSERT_EQ(shards[i], sums[end] - sums[next]) << "shard " << i;
        next = end;
    }
    ASSERT_EQ(next, cores);
}

class ShardsProperty : public testing::TestWithParam<unsigned> {};

TEST_P(ShardsProperty, HoldsForEveryCountOfCoresAndSize) {
    const unsigned threads = GetParam();
    std::mt19937 random(20260301 + threads);
    for (unsigned cores = 1; cores <= 200; cores++) {
        const Topology topology = shuffled(cores, threads, random);
        const auto sums = growing(topology.cores);
        for (unsigned size = 1; size <= 64; size++) {
            check(shards_of(topology.cores, size), sums, size);
            if (HasFatalFailure()) FAIL() << cores << " cores of " << threads << " threads, size " << size;
        }
        // The split of an LLC into cores does not depend on the size: one size is enough.
        const unsigned size = 1 + random() % 64;
        check(shards_of(topology.llcs.front().cpus, CoreIndex(topology), size), sums, size);
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, ShardsProperty, testing::Range(1U, 9U));

}  // namespace
}  // namespace wq
