// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>

#include "scenario.h"

namespace wq::faults {

// Runs all steps of a scenario, with the edge watching. AFTER, if given, is called after each, the edge at
// rest.
void live(const Scenario& scenario, Host& host, const std::function<void(const Step&)>& after = {});

// Everything, for `./dev soak faults`; else a part that takes seconds (WQ_TUNED_FAULTS=all).
bool is_long();

}  // namespace wq::faults
