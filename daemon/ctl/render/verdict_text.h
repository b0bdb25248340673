// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "judge/trial.h"

namespace wq::ctl {

// "+1.23% (-0.50..+2.90)"; without the interval where there is none.
std::string effect_text(const Effect& effect);
// "improved", "inconclusive (interrupted)". That a trial went on to its last pair, its pairs tell.
std::string verdict_text(const TrialVerdict& verdict);

}  // namespace wq::ctl
