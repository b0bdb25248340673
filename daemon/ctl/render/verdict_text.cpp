// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/verdict_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "evidence/effect.h"

namespace wq::ctl {

std::string effect_text_of(const nlohmann::json& about) {
    const auto percent = about.value("effect_percent", nlohmann::json(nullptr));
    if (!percent.is_number()) return "";
    Effect effect{percent.get<double>(), {}};
    const auto interval = about.value("interval_percent", nlohmann::json(nullptr));
    if (interval.is_array()) effect.interval = {interval.at(0).get<double>(), interval.at(1).get<double>()};
    return about.value("counter", "") + " " + effect_text(effect);
}

std::string verdict_text(const nlohmann::json& record) {
    const auto text = [&](const char* key) { return record.value(key, ""); };
    std::string out = fmt::format("{} against {}: {}", text("candidate"), text("reference"), text("verdict"));
    if (const std::string reason = text("reason"); !reason.empty()) out += " (" + reason + ")";
    const std::string effect = effect_text_of(record);
    if (effect.empty()) return out;
    return fmt::format("{}, {} in {}", out, effect, plural(record.value("pairs", 0U), "pair"));
}

}  // namespace wq::ctl
