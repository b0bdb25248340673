// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <set>
#include <string>

#include "kernel/paths.h"

namespace wq {

// The block devices that swap uses, as "MAJOR:MINOR": swap partitions, the devices of file systems with swap
// files, and all devices below them (a volume, an encrypted disk). Skips files that cannot be read.
std::set<std::string> swap_devices(const Paths& paths);

// Whether the workqueue NAME belongs to a dm-crypt mapping in DEVICES. We do not know which other workqueues
// a device needs.
bool serves_swap(const std::string& name, const std::set<std::string>& devices);

}  // namespace wq
