// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "judge/trial.h"

namespace wq::ctl {

// Returns "+1.23% (-0.50..+2.90)"; without the interval if there is none.
std::string effect_text(const Effect& effect);
// Returns "improved" or "inconclusive (interrupted)". Omits the reason that all pairs were used, because the
// number of pairs shows it.
std::string verdict_text(const TrialVerdict& verdict);

}  // namespace wq::ctl
