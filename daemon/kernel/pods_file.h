// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kernel/paths.h"
#include "model/kernel_pods.h"

namespace wq {

// The kernel's pods in a file of /run: a short program that may see the kernel's addresses (`wq-tuned
// --pods`) leaves them there for the daemon, which may not. They are made at boot and stay, as /run does.

std::string pods_path(const Paths& paths);

// Replaces PATH by PODS, or by why they could not be read. Mode 0644.
Status leave_pods(const std::string& path, const Result<KernelPods>& pods);

// What leave_pods() left; nothing where PATH is absent. Errors: that of reading the pods, or the file's own.
std::optional<Result<KernelPods>> find_pods(const std::string& path);

}  // namespace wq
