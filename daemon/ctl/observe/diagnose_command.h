// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "bpf/work_monitor.h"
#include "bpf/work_profile.h"
#include "ctl/command.h"
#include "ctl/observe/diagnosis.h"
#include "machine/paths.h"

namespace wq::ctl {

struct DiagnoseOptions {
    double seconds = 5;
    bool json = false;
};

// The data sources of `diagnose`. If one cannot be used, the others still are.
struct DiagnoseTools {
    Paths paths;              // of /proc and /sys
    WorkMonitor& monitor;     // with probes
    WorkMonitor& statistics;  // without probes; used if the kernel refuses probes
    WorkProfile& profile;
    Result<KernelDump> (*dump)();
};

// `wq-tunectl diagnose`: watches for a while and prints what keeps kworkers busy. A signal ends the look
// early; then it prints what was seen so far. Fails only if nothing can be seen or printed.
int diagnose(const DiagnoseOptions& options, const DiagnoseTools& tools);

// The diagnosis in plain words, COLUMNS wide.
std::string diagnosis_text(const Diagnosis& diagnosis, std::size_t columns);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

// Adds --seconds, how long to look.
CLI::Option* add_look_seconds(CLI::App& command, double& seconds);

CommandRun set_up_diagnose(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
