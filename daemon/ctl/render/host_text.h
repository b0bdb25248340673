// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wq::ctl {

// The part of `status` about the host: isolated CPUs with the work that ran on them, and if VERBOSE the
// kernel's features. "" for a status without these keys.
std::string host_text(const nlohmann::json& status, bool verbose);

// The CPUs of ISOLATION, a part of `status --json`, as a table; "" if none is isolated.
std::string isolated_cpus_text(const nlohmann::json& isolation);

// "latency 8.1% better (7 to 9.2)" for a comparison of a status document or an element of `history --json`;
// "" if it has no effect yet.
std::string effect_text_of(const nlohmann::json& about);
// "smt against cache: improved, latency 8.1% better (7 to 9.2) in 23 pairs" for an element of `history
// --json`.
std::string verdict_text(const nlohmann::json& record);

}  // namespace wq::ctl
