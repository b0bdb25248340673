// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/progress.h"

#include <fmt/format.h>

namespace wq::ctl {

using nlohmann::json;

std::string progress_text(const json& trial) {
    std::string out = fmt::format("pair {} of {}, {}", trial.value("pair", 0), trial.value("max_pairs", 0),
                                  trial.value("phase", ""));
    if (const json effect = trial.value("effect_percent", json(nullptr)); effect.is_number())
        out += fmt::format("; {} {:+.1f}% so far, E {:.1f} for worse, {:.1f} for better",
                           trial.value("counter", ""), effect.get<double>(), trial.value("e_regressed", 0.0),
                           trial.value("e_improved", 0.0));
    if (const unsigned dropped = trial.value("dropped", 0U); dropped > 0)
        out += fmt::format("; {} dropped", dropped);
    if (const std::string reason = trial.value("reason", ""); !reason.empty()) out += "; " + reason;
    return out;
}

}  // namespace wq::ctl
