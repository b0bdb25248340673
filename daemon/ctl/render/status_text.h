// SPDX-License-Identifier: LGPL-2.1-or-later
// Parts of a status document as text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/render/page.h"
#include "evidence/comparison.h"

namespace wq::ctl {

// The "effect_percent" of ABOUT, with its "interval_percent"; empty if it has none.
template <class Json>
std::optional<Effect> effect_in(const Json& about) {
    const Json percent = about.value("effect_percent", Json());
    if (percent.is_null()) return std::nullopt;
    Effect out{percent.template get<double>(), {}};
    if (const Json interval = about.value("interval_percent", Json()); !interval.is_null())
        out.interval = {interval.at(0).template get<double>(), interval.at(1).template get<double>()};
    return out;
}

// A comparison as text. TRIAL: a target's `comparison` in a status document, not null. NOW: s since 1970.

// "e-value 12 that smt is better than cache, latency 3.1% better (1.2 to 5) in 23 of 64 pairs; next pair in 4
// min".
std::string progress_text(const nlohmann::json& trial, std::int64_t now);

// What TARGET of a status document has under "contention", as lines with their labels "lock wait" and
// "pools".
std::vector<std::pair<const char*, std::string>> contention_lines(const nlohmann::json& target);

// All comparisons of a status document: "5 of 14 targets: 3 improved, 1 undecided, 1 regressed; next pair in
// 4 min". "" if STATUS has no experiments (no daemon), or if the daemon observes and nothing was compared.
std::string comparisons_text(const nlohmann::json& status, std::int64_t now);

// What the scopes in force are worth, the first lines of `status` and `report`: a summary, and if there are
// several classes a line for each of the first three. Empty for a STATUS that does not know.
std::vector<std::string> worth_lines(const nlohmann::json& status, std::int64_t now);

// Adds the isolated CPUs, a part of `status --json`; nothing if none is isolated.
void add_isolation(Shown& out, const nlohmann::json& isolation);

// "smt against cache: improved, latency 8.1% better (7 to 9.2) in 23 pairs; lock wait ..." for an element of
// `history --json`.
std::string verdict_text(const nlohmann::json& record);

}  // namespace wq::ctl
