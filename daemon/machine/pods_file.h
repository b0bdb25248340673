// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/topology.h"

namespace wq {

// The kernel's pods in a file in /run. A short-lived program that may read kernel addresses (`wq-tuned
// --pods`) writes it for the daemon, which may not. The kernel makes its pods at boot and never changes
// them, and /run is cleared at boot.

std::string pods_path(const Paths& paths);

// Writes PODS, or the error that prevented reading them, to PATH. Mode 0644. Does not replace pods that PATH
// already has by an error: they are still valid.
Status leave_pods(const std::string& path, const Result<KernelPods>& pods);

// Reads the file of leave_pods(); nullopt if PATH does not exist. Errors: the one that leave_pods() stored,
// or an error of the file itself.
std::optional<Result<KernelPods>> find_pods(const std::string& path);

// The CPUs that were online and not isolated when the daemon first started in this boot, in a file in /run,
// which a boot clears: the kernel makes its pods once, so a CPU that comes later is not in a known one.

// Empty if there is no such file, or it is not a list of CPUs.
CpuSet read_first_cpus(const Paths& paths);

// Writes the file from NOW unless it exists, or NOW is in doubt.
Status keep_first_cpus(const Paths& paths, const Topology& now);

}  // namespace wq
