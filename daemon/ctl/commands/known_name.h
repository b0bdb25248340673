// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/paths.h"
#include "machine/workqueue.h"

namespace wq::ctl {

// What a name is that is not a target's.
struct KnownName {
    std::string kind;                  // "kworker", "block device", "mount point", "workqueue"
    std::vector<std::string> text;     // what it is and which workqueues it has to do with, in sentences
    std::vector<std::string> targets;  // those of TARGETS that serve it
};

// Explains NAME: a kworker, a block device (/dev/dm-0, /dev/mapper/disk, dm-0), the path of a mount point, or
// a workqueue that only @default reaches. Reads /sys and /proc below PATHS; nullopt for any other name.
std::optional<KnownName> known_name(const Paths& paths, const std::vector<Workqueue>& targets,
                                    const std::string& name);

}  // namespace wq::ctl
