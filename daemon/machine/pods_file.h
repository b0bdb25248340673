// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"

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

}  // namespace wq
