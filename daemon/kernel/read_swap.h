// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <set>
#include <string>

#include "kernel/paths.h"

namespace wq {

// The block devices through which swap goes, as "MAJOR:MINOR": of swap partitions and of the file systems of
// swap files, and all below them (a volume, an encrypted disk). What cannot be read is missing.
std::set<std::string> swap_devices(const Paths& paths);

// Whether the workqueue NAME is that of a dm-crypt mapping among DEVICES. Which other workqueues a device
// needs is not known.
bool serves_swap(const std::string& name, const std::set<std::string>& devices);

}  // namespace wq
