// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

#include "scenario.h"

namespace wq::faults {

// Runs all steps of SCENARIO. The edge watches, except in steps of somebody else. AFTER, if given, is called
// after each step, while the edge rests.
void live(const Scenario& scenario, Host& host, const std::function<void(const Step&)>& after = {});

// True with WQ_TUNED_FAULTS=all (`./dev soak faults`): test everything, not only a part that takes seconds.
bool is_long();

}  // namespace wq::faults
