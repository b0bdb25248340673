// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace wq::ctl {

// Progress of a trial as text: "pair 5 of 16, counting; latency +1.2% so far, ...". TRIAL is the `trial` of
// a target in a status document, not null.
std::string progress_text(const nlohmann::json& trial);

}  // namespace wq::ctl
