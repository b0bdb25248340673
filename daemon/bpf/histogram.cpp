// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bpf/bpf_shared.h"

namespace wq {
namespace {

// The lowest value of BUCKET; the inverse of wq_bucket_by().
double lowest(unsigned bucket, unsigned bits) {
    const unsigned per_octave = 1U << bits;
    if (bucket < per_octave) return bucket;
    const int octave = static_cast<int>(bucket >> bits) - 1;
    return std::ldexp(per_octave + (bucket & (per_octave - 1)), octave);
}

}  // namespace

Histogram::Histogram(unsigned bits) : bits_(bits), counts_((40 - bits + 1) << bits) {
    static_assert(WQ_BUCKETS == (40 - 7 + 1) << 7 && kTimeBits == WQ_TIME_BITS);
}

std::uint64_t Histogram::items() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double Histogram::percentile(double share) const {
    const auto all = static_cast<double>(items());
    if (all == 0) return 0;
    const double rank = std::clamp(std::ceil(share * all), 1.0, all);
    double below = 0;
    const auto buckets = static_cast<unsigned>(counts_.size());
    const auto from = [this](unsigned bucket) { return lowest(bucket, bits_); };
    for (unsigned bucket = 0; bucket < buckets; bucket++) {
        const auto here = static_cast<double>(counts_[bucket]);
        // Assumes that the items of a bucket are evenly distributed in it.
        if (here > 0 && below + here >= rank)
            return from(bucket) + (from(bucket + 1) - from(bucket)) * (rank - below - 0.5) / here;
        below += here;
    }
    return from(buckets);
}

double Histogram::mean() const {
    const auto all = static_cast<double>(items());
    if (all == 0) return 0;
    double sum = 0;
    for (unsigned bucket = 0; bucket < counts_.size(); bucket++) {
        // A bucket that is one ns wide holds its lowest value only.
        const double from = lowest(bucket, bits_), width = lowest(bucket + 1, bits_) - from;
        sum += static_cast<double>(counts_[bucket]) * (from + (width > 1 ? width / 2 : 0));
    }
    return sum / all;
}

}  // namespace wq
