// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace wq {
namespace {

constexpr double kWeight = 1.0 / 8;     // of the last pair in a mean
constexpr double kLeastPercent = 0.01;  // shown

std::string percent_text(double percent) {
    if (percent < kLeastPercent) return percent > 0 ? "under 0.01%" : "0%";
    return percent < 10 ? fmt::format("{:.2g}%", percent) : fmt::format("{:.0f}%", percent);
}

// "KEY 2 -> 12"; "KEY 2" if both are the same; "" if one is not known.
std::string change_of(const char* key, const std::optional<unsigned>& from,
                      const std::optional<unsigned>& to) {
    if (!from || !to) return "";
    return *from == *to ? fmt::format(", {} {}", key, *from) : fmt::format(", {} {} -> {}", key, *from, *to);
}

ArmWork work_of(const WorkCount& mean, double lowest) {
    ArmWork out;
    if (!std::isnan(mean.lock)) {
        out.lock_ns = std::max(mean.lock - lowest, 0.0);
        if (mean.latency > 0) out.lock_percent = std::min(100 * *out.lock_ns / mean.latency, 100.0);
    }
    if (mean.pools > 0) out.pools = mean.pools;
    if (mean.workers > 0) out.workers = mean.workers;
    return out;
}

}  // namespace

static void describe(JsonPlace& at, ArmWork& work) {
    constexpr double kMost = 1e18;  // ns
    at("lock_ns", work.lock_ns, 0.0, kMost);
    at("lock_percent", work.lock_percent, 0.0, 100.0);
    at("pools", work.pools);
    at("workers", work.workers);
}

void describe(JsonPlace& at, Contention& contention) {
    at("reference", contention.reference);
    at("candidate", contention.candidate);
}

nlohmann::json to_json(const std::optional<Contention>& contention) {
    nlohmann::json out;
    std::string ignored;
    JsonPlace(true, out, ignored).value(const_cast<std::optional<Contention>&>(contention));
    return out;
}

std::optional<Contention> contention_in(nlohmann::json json) {
    std::optional<Contention> out;
    std::string error;
    JsonPlace(false, json, error).value(out);
    return error.empty() ? out : std::nullopt;
}

std::string text_of(const Contention& contention) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    const std::string lock = from.lock_percent && to.lock_percent
                                 ? fmt::format("{} of latency -> {}", percent_text(*from.lock_percent),
                                               percent_text(*to.lock_percent))
                                 : "not seen";
    return "lock wait " + lock + change_of("pools", from.pools, to.pools) +
           change_of("kworkers", from.workers, to.workers);
}

std::string lock_text(const Contention& contention, const std::string& reference,
                      const std::string& candidate) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    if (!from.lock_percent || !to.lock_percent || !from.lock_ns || !to.lock_ns)
        return "not seen on this kernel";
    return fmt::format("{} of latency under {} ({:.0f} ns an item), {} under {} ({:.0f} ns){}",
                       percent_text(*from.lock_percent), reference, *from.lock_ns,
                       percent_text(*to.lock_percent), candidate, *to.lock_ns,
                       *from.lock_percent < kLeastLockPercent
                           ? fmt::format(": a scope finer than {} can hardly gain by the lock", reference)
                           : "");
}

std::string pools_text(const Contention& contention, const std::string& reference,
                       const std::string& candidate) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    if (!from.workers || !to.workers || !from.pools || !to.pools) return "";
    return fmt::format("{} with {} kworkers under {}, {} with {} under {}", *from.pools, *from.workers,
                       reference, *to.pools, *to.workers, candidate);
}

void WorkSeen::add(const WorkCount& reference, const WorkCount& candidate) {
    const bool begins = std::exchange(begins_, false);
    for (const auto& [mean, count] : {std::pair(&means_[0], &reference), {&means_[1], &candidate}}) {
        const WorkCount before = *mean;
        *mean = *count;
        if (begins || std::isnan(before.lock) || std::isnan(count->lock)) continue;
        mean->lock = before.lock + kWeight * (count->lock - before.lock);
        mean->latency = before.latency + kWeight * (count->latency - before.latency);
    }
}

Contention WorkSeen::above(double lowest) const {
    return {work_of(means_[0], lowest), work_of(means_[1], lowest)};
}

}  // namespace wq
