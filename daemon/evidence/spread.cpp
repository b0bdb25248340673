// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/spread.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace wq {
namespace {

constexpr double kNormal80 = 0.8416;              // 80% quantile of the standard normal distribution
constexpr std::uint64_t kLeastToLeaveOneOut = 8;  // hosts

// Cochran's Q: the sum of weight * (mean - overall mean)^2.
double q_of(const Spread::State& s) {
    return s.weight <= 0 ? 0 : std::max(0.0, s.squares - s.sum * s.sum / s.weight);
}

Spread::State without(Spread::State s, const Spread::Host& host) {
    s.hosts--;
    s.weight -= host.weight;
    s.sum -= host.weight * host.mean;
    s.squares -= host.weight * host.mean * host.mean;
    return s;
}

// The 80% quantile of chi-squared (Wilson and Hilferty, 1931).
double chi_squared_80(double degrees) {
    const double part = 2 / (9 * degrees);
    return degrees * std::pow(1 - part + kNormal80 * std::sqrt(part), 3);
}

// The order must not depend on which of two equal hosts came first.
bool is_less(const Spread::Host& a, const Spread::Host& b) {
    return std::tie(a.mean, a.weight) < std::tie(b.mean, b.weight);
}

}  // namespace

Spread Spread::of_host(std::uint64_t pairs, double sum, double squares) {
    if (pairs < kLeastPairs) return {};
    const auto n = static_cast<double>(pairs);
    const double variance = std::max(0.0, squares - sum * sum / n) / (n * (n - 1));
    const Host host{std::clamp(sum / n, -kMostMean, kMostMean),
                    1 / std::max(variance, kLeastDeviation * kLeastDeviation)};
    return Spread({1, host.weight, host.weight * host.weight, host.weight * host.mean,
                   host.weight * host.mean * host.mean, host, host});
}

void Spread::add(const Spread& other) {
    const State& o = other.state_;
    if (o.hosts == 0) return;
    if (state_.hosts == 0 || is_less(o.least, state_.least)) state_.least = o.least;
    if (state_.hosts == 0 || is_less(state_.most, o.most)) state_.most = o.most;
    state_.hosts += o.hosts;
    state_.weight += o.weight;
    state_.weight_squares += o.weight_squares;
    state_.sum += o.sum;
    state_.squares += o.squares;
}

double Spread::deviation() const {
    const State& s = state_;
    if (s.hosts < 2) return 0;
    const double scale = s.weight - s.weight_squares / s.weight;
    if (scale <= 0) return 0;
    return std::sqrt(std::max(0.0, (q_of(s) - static_cast<double>(s.hosts - 1)) / scale));
}

bool Spread::is_visible() const {
    const State& s = state_;
    if (s.hosts < 3) return false;
    if (s.hosts < kLeastToLeaveOneOut) return q_of(s) > chi_squared_80(static_cast<double>(s.hosts - 1));
    const double q = std::min(q_of(without(s, s.least)), q_of(without(s, s.most)));
    return q > chi_squared_80(static_cast<double>(s.hosts - 2));
}

}  // namespace wq
