// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/cpu_set.h"
#include "model/scope.h"

namespace wq {

// The name of the target that stands for the module parameter default_affinity_scope. No workqueue has it.
inline constexpr const char* kDefaultTarget = "@default";

enum class Kind { unbound, ordered, per_cpu, default_scope };
std::string_view name_of(Kind kind);  // "unbound", "ordered", "per-cpu", "default"

// One workqueue's folder in sysfs (or the module parameter), as read at one moment.
struct Workqueue {
    std::string name;
    Kind kind = Kind::unbound;
    ino_t inode = 0;  // another inode is another workqueue, even under the same name
    ScopeFile scope;
    std::optional<bool> strict;  // affinity_strict; empty where there is no such file
    CpuSet effective;            // cpumask within the unbound mask: the CPUs that its pods cut up
    std::string untouchable;     // why it can never be planned; empty where it can
    bool unread = false;         // it is a file which could not be read this time
};

}  // namespace wq
