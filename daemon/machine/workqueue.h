// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/cpu_set.h"
#include "machine/scope.h"

namespace wq {

// Target name for the module parameter default_affinity_scope. No workqueue has this name.
inline constexpr const char* kDefaultTarget = "@default";

enum class Kind { unbound, ordered, per_cpu, default_scope };
std::string_view name_of(Kind kind);  // "unbound", "ordered", "per-cpu", "default"

// One workqueue's sysfs directory (or the module parameter), read at one moment.
struct Workqueue {
    std::string name;
    Kind kind = Kind::unbound;
    ino_t inode = 0;  // a different inode is a different workqueue, even with the same name
    ScopeFile scope;
    std::optional<bool> strict;  // affinity_strict; empty if the file does not exist
    CpuSet effective;            // cpumask within the unbound mask: the CPUs that its pods divide
    std::string untouchable;     // why it can never be planned; empty if it can
    bool unread = false;         // a file exists but could not be read this time
};

}  // namespace wq
