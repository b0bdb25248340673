// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bpf/work_counters.h"
#include "model/isolation.h"
#include "model/kernel_features.h"
#include "model/kernel_info.h"
#include "model/topology.h"

namespace wq {

// "isolation" of `wq-tunectl status --json`: the CPUs that are set apart, and the work that ran on them.
nlohmann::json isolation_json(const Isolation& isolation, const Watched& watched);

// "kernel" there: its release and its features. CUT_SHORT: a name that we wrote was taken for a prefix of it,
// which is the surest sign that parsing is not exact.
nlohmann::json features_json(const KernelInfo& kernel, const KernelFeatures& features, bool cut_short);

// Where the pods of plans are from, {"source": "kernel" | "model", "why", "differ"}: WHY the kernel's own
// were not read, or null; and of each scope whose pods, as read, are not those of the model, the kernel's, as
// CPU lists, online CPUs alone.
nlohmann::json pods_json(const KernelInfo& kernel, const Topology& topology);

}  // namespace wq
