// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "counters/work_counters.h"
#include "model/isolation.h"
#include "model/kernel_features.h"
#include "model/kernel_info.h"

namespace wq {

// "isolation" of `wq-tunectl status --json`: the CPUs that are set apart, and the work that ran on them.
nlohmann::json isolation_json(const Isolation& isolation, const Watched& watched);

// "kernel" there: its release and its features. CUT_SHORT: a name that we wrote was taken for a prefix of it,
// which is the surest sign that parsing is not exact.
nlohmann::json features_json(const KernelInfo& kernel, const KernelFeatures& features, bool cut_short);

}  // namespace wq
