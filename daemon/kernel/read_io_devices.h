// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/io_devices.h"

namespace wq {

// Reads the files below PATHS; names are sorted and printable. Files that cannot be read count as missing. A
// dm-crypt mapping is recognized by the UUID that cryptsetup sets, or by its workqueue (Linux 6.10 or later).
IoDevices read_io_devices(const Paths& paths);

}  // namespace wq
