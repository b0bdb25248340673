// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "judge/trial.h"

namespace wq::ctl {

// Returns "+1.23% (-0.50..+2.90)"; without the interval if there is none.
std::string effect_text(const Effect& effect);
// Returns "improved" or "undecided (interrupted)". Omits the reason that all pairs were used, because the
// number of pairs shows it.
std::string verdict_text(const TrialVerdict& verdict);
// Returns "smt against cache: improved, latency -8.1% in 23 pairs" for an element of `history --json`.
std::string verdict_text(const nlohmann::json& record);

}  // namespace wq::ctl
