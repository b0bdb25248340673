// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/io_devices.h"

namespace wq {

// Reads the files below PATHS; names are sorted and printable. What cannot be read is missing. A mapping of
// dm-crypt is known by the UUID that cryptsetup gives it, or by its workqueue (Linux 6.10 or later).
IoDevices read_io_devices(const Paths& paths);

}  // namespace wq
