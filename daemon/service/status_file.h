// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "bpf/work_counters.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// /run/wq-tuned/status.json: what the daemon knows, for everybody. It names the process that wrote it, so
// that it is not believed after that process has ended.

// The text of the file: DOCUMENT (status.h) of this process.
std::string status_text(nlohmann::json document);

// Returns the document of the daemon that runs now. Error: ESRCH if none runs; the text says why the file is
// not believed, "" if there is none or the restorer has replaced it.
Result<nlohmann::json> read_status(const Paths& paths);

// DOCUMENT has "daemon" with a state, and targets with names. The type of nothing else is checked.
bool is_status(const nlohmann::json& document);

// "isolation" of `wq-tunectl status --json`: the isolated CPUs, and the work that the daemon counted on them.
nlohmann::json isolation_json(const Isolation& isolation);
nlohmann::json counted_json(const Watched& watched);

// "kernel" of `wq-tunectl status --json`: its release and its features. CUT_SHORT: the kernel stored only a
// prefix of a scope name that we wrote, which proves that its parsing is not exact.
nlohmann::json features_json(const KernelInfo& kernel, const KernelFeatures& features, bool cut_short);

// The source of the pods for plans, {"source": "kernel" | "model", "why", "differ"}: "why" is the reason
// that the kernel's own pods were not read, or null. "differ" has the kernel's pods of each scope where they
// differ from the model, as lists of online CPUs.
nlohmann::json pods_json(const KernelInfo& kernel, const Topology& topology);

}  // namespace wq
