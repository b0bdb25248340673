// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "counters/bpf_shared.h"

namespace wq {
namespace {

constexpr unsigned kPerOctave = 128;

// The least value of BUCKET; the inverse of wq_bucket().
double lowest(unsigned bucket) {
    if (bucket < kPerOctave) return bucket;
    const int octave = static_cast<int>(bucket / kPerOctave) - 1;
    return std::ldexp(kPerOctave + bucket % kPerOctave, octave);
}

}  // namespace

Histogram::Histogram() : counts_(WQ_BUCKETS) {}

std::uint64_t Histogram::items() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double Histogram::percentile(double share) const {
    const auto all = static_cast<double>(items());
    if (all == 0) return 0;
    const double rank = std::clamp(std::ceil(share * all), 1.0, all);
    double below = 0;
    for (unsigned bucket = 0; bucket < WQ_BUCKETS; bucket++) {
        const auto here = static_cast<double>(counts_[bucket]);
        // Those of one bucket are taken to lie evenly in it.
        if (here > 0 && below + here >= rank)
            return lowest(bucket) + (lowest(bucket + 1) - lowest(bucket)) * (rank - below - 0.5) / here;
        below += here;
    }
    return lowest(WQ_BUCKETS);
}

}  // namespace wq
