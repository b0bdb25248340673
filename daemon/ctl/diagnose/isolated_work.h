// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/work_profile.h"
#include "ctl/diagnose/paragraphs.h"

namespace wq::ctl {

// Work of one function on isolated CPUs.
struct IsolatedFinding {
    std::string workqueue, kind;  // "": in a soft interrupt
    std::string function;
    std::uint64_t items = 0;  // that started there
    std::vector<WorkOrigin> origins;
};

// What started on isolated CPUs, the most items first. WORKQUEUES: the kernel's, by address, for their names.
// What was only queued there is not in it.
std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues);

// A paragraph for each function, up to twelve.
void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated);
nlohmann::ordered_json isolated_json(const std::vector<IsolatedFinding>& findings);

}  // namespace wq::ctl
