// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wq::ctl {

// "latency 8.1% better (7 to 9.2)" for a comparison of a status document or an element of `history --json`;
// "" if it has no effect yet.
std::string effect_text_of(const nlohmann::json& about);
// "smt against cache: improved, latency 8.1% better (7 to 9.2) in 23 pairs" for an element of `history
// --json`.
std::string verdict_text(const nlohmann::json& record);

}  // namespace wq::ctl
