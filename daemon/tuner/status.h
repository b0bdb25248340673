// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/trials.h"
#include "tuner/tuner.h"

namespace wq {

// The document of `wq-tunectl status --json`: {"daemon":{...},"targets":[...]}. DAEMON_STATE
// is running, paused (a kill switch), observing or absent.
nlohmann::json status_json(const Tuner& tuner, const Trials* trials, const std::string& daemon_state);

// The names of the host tables that POLICY has in force, in the order in which they are merged.
std::vector<std::string> hosts_in_force(const Policy& policy);

// One line of JSON. Names that are not UTF-8 are shown with replacement characters.
std::string dump_json(const nlohmann::json& document);

}  // namespace wq
