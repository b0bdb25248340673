// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/verdict_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace wq::ctl {

std::string effect_text(const Effect& effect) {
    std::string median = fmt::format("{:+.2f}%", effect.percent);
    if (!effect.interval) return median;
    return fmt::format("{} ({:+.2f}..{:+.2f})", median, effect.interval->low, effect.interval->high);
}

std::string verdict_text(const TrialVerdict& verdict) {
    std::string outcome(name_of(verdict.outcome));
    if (verdict.reason.empty() || verdict.reason == kMaxPairsReason) return outcome;
    return fmt::format("{} ({})", outcome, verdict.reason);
}

std::string verdict_text(const nlohmann::json& record) {
    const auto text = [&](const char* key) { return record.value(key, ""); };
    std::string out = fmt::format("{} against {}: {}", text("candidate"), text("baseline"), text("verdict"));
    if (const std::string reason = text("reason"); !reason.empty()) out += " (" + reason + ")";
    const auto effect = record.value("effect_percent", nlohmann::json(nullptr));
    if (!effect.is_number()) return out;
    const auto pairs = record.value("pairs", 0U);
    return out +
           fmt::format(", {} {:+.1f}% in {}", text("counter"), effect.get<double>(), plural(pairs, "pair"));
}

}  // namespace wq::ctl
