// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/work_monitor.h"
#include "bpf/work_profile.h"
#include "ctl/observe/diagnose_json.h"
#include "machine/paths.h"

namespace wq::ctl {

struct IsolationOptions {
    double seconds = 5;
    bool json = false;
};

struct IsolationTools {
    Paths paths;              // of /proc and /sys
    WorkMonitor& statistics;  // for the names of workqueues
    WorkProfile& profile;
};

// `wq-tunectl status --isolation`: watches the isolated CPUs for a while, and prints which work started on
// them and who queued it. It needs neither the daemon nor an experiment. A signal ends the look early; then
// it prints what was seen so far. If no CPU is isolated, it says so and attaches nothing.
int isolation(const IsolationOptions& options, const IsolationTools& tools);

// Work of one function on isolated CPUs.
struct IsolatedFinding {
    std::string workqueue, kind;  // "": in a soft interrupt; an unknown workqueue also has no kind
    std::string function;
    std::uint64_t items = 0;  // items that started there
    std::vector<WorkOrigin> origins;
};

// Returns the work that started on isolated CPUs, most items first, without work that was only queued there.
// WORKQUEUES: the kernel's workqueues by address, for their names.
std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues);

// Adds a paragraph for each function, at most twelve.
void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated);
nlohmann::ordered_json isolated_json(const std::vector<IsolatedFinding>& findings);

}  // namespace wq::ctl
