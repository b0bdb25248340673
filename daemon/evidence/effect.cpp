// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

// The interval follows Hodges and Lehmann (1963). The Walsh averages of n differences are the means of any
// two of them, and of each with itself. The number of averages above a value is Wilcoxon's signed-rank
// statistic for that value as the median. So the values that the test does not reject lie between the C-th
// smallest and the C-th largest average, where C - 1 is the largest rejected rank sum. The n (n+1) / 2
// averages are counted, not stored: 10,000 pairs would have fifty million.

namespace wq {
namespace {

constexpr double kTail = 0.025;  // on each side
constexpr double kTailNormal = 1.959963984540054;
constexpr std::size_t kMostExact = 64;  // differences; above this, the normal approximation is as good

// The probability of each sum of the ranks 1..n, if each rank counts with probability 1/2.
std::vector<double> rank_sums(std::size_t n) {
    std::vector<double> p(n * (n + 1) / 2 + 1, 0.0);
    p[0] = 1;
    for (std::size_t rank = 1; rank <= n; rank++)
        for (std::size_t sum = p.size(); sum-- > 0;)
            p[sum] = (p[sum] + (sum >= rank ? p[sum - rank] : 0.0)) / 2;
    return p;
}

std::uint64_t exactly_refused(std::size_t n) {
    const auto p = rank_sums(n);
    std::uint64_t refused = 0;
    double below = p[0];
    while (below <= kTail) below += p[++refused];
    return refused;
}

// The number of rank sums, from 0 upwards, that are rejected on one side: C in the comment above. It is
// needed for each target at each look, and takes 0.1 ms to compute for 64 differences, so the results are
// cached.
std::uint64_t refused_sums(std::size_t n) {
    if (n > kMostExact) {
        const double ranks = static_cast<double>(n);
        const double mean = ranks * (ranks + 1) / 4;
        const double deviation = std::sqrt(mean * (2 * ranks + 1) / 6);
        return static_cast<std::uint64_t>(std::llround(mean - kTailNormal * deviation));
    }
    static std::array<std::uint64_t, kMostExact + 1> known{};
    if (known[n] == 0) known[n] = exactly_refused(n);
    return known[n];
}

// Number of Walsh averages of SORTED that are at most VALUE.
std::uint64_t averages_up_to(const std::vector<double>& sorted, double value) {
    std::uint64_t count = 0;
    std::size_t end = sorted.size();  // averages of sorted[i] with elements before END are at most VALUE
    for (std::size_t i = 0; i < end; i++) {
        while (end > i && (sorted[i] + sorted[end - 1]) / 2 > value) end--;
        count += end - i;
    }
    return count;
}

// The K-th smallest Walsh average, K from 1.
double walsh_average(const std::vector<double>& sorted, std::uint64_t k) {
    double low = sorted.front();
    double high = sorted.back();
    if (averages_up_to(sorted, low) >= k) return low;
    for (;;) {
        const double middle = (low + high) / 2;
        if (middle <= low || middle >= high) return high;
        (averages_up_to(sorted, middle) >= k ? high : low) = middle;
    }
}

double median(const std::vector<double>& sorted) {
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double percent(double difference) {
    return std::min(100 * std::expm1(difference), std::numeric_limits<double>::max());
}

constexpr double kLeastShown = 0.01;  // percent
constexpr double kMostShown = 1e6;

// |PERCENT| with two significant digits.
std::string size_text(double percent) {
    const double size = std::abs(percent);
    if (size < kLeastShown) return "0";
    if (size < 99.5 || size >= kMostShown) return fmt::format("{:.2g}", size);
    const double unit = std::pow(10, std::floor(std::log10(size)) - 1);
    return fmt::format("{:.0f}", std::round(size / unit) * unit);
}

int side_of(double percent) {
    return std::abs(percent) < kLeastShown ? 0 : percent < 0 ? -1 : 1;
}

std::string change_text(double percent) {
    const int side = side_of(percent);
    return side == 0 ? "no difference" : size_text(percent) + (side < 0 ? "% better" : "% worse");
}

}  // namespace

Effect effect_of(std::vector<double> differences) {
    if (differences.empty()) return {};
    std::sort(differences.begin(), differences.end());
    Effect out{percent(median(differences)), {}};
    const std::size_t n = differences.size();
    if (n < kLeastForInterval) return out;
    const std::uint64_t nth = refused_sums(n);
    out.interval = {percent(walsh_average(differences, nth)),
                    percent(walsh_average(differences, n * (n + 1) / 2 + 1 - nth))};
    return out;
}

std::string effect_text(const Effect& effect) {
    const std::string out = change_text(effect.percent);
    if (!effect.interval) return out;
    double from = effect.interval->low;
    double to = effect.interval->high;
    if (side_of(effect.percent) < 0) std::swap(from, to);  // ends on the side of the median
    if (side_of(from) == side_of(to) && side_of(to) == side_of(effect.percent))
        return side_of(to) == 0 ? out : fmt::format("{} ({} to {})", out, size_text(from), size_text(to));
    return fmt::format("{} ({} to {})", out, change_text(from), change_text(to));
}

}  // namespace wq
