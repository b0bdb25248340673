// SPDX-License-Identifier: LGPL-2.1-or-later
#include "noise.h"

#include <cmath>
#include <numbers>

namespace wq {

std::uint64_t Random::bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return z ^ (z >> 31U);
}

double Random::uniform() {
    return static_cast<double>((bits() >> 11U) + 1) * 0x1p-53;
}

double Random::normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
}

Noise independent(double deviation) {
    return [=](Random& random) { return deviation * random.normal(); };
}

Noise autoregressive(double deviation, double memory) {
    const double fresh = deviation * std::sqrt(1 - memory * memory);
    return [=, last = 0.0, started = false](Random& random) mutable {
        last = started ? memory * last + fresh * random.normal() : deviation * random.normal();
        started = true;
        return last;
    };
}

Noise drifting(double deviation, double per_window) {
    return [=, level = 0.0](Random& random) mutable {
        level += per_window;
        return level + deviation * random.normal();
    };
}

Noise shifting(double deviation, double by, double probability) {
    return [=, level = 0.0](Random& random) mutable {
        if (random.uniform() <= probability) level += random.coin() ? std::log1p(by) : -std::log1p(by);
        return level + deviation * random.normal();
    };
}

Noise student2(double scale) {
    return [=](Random& random) { return scale * random.normal() / std::sqrt(-std::log(random.uniform())); };
}

}  // namespace wq
