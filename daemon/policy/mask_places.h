// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "base/cpu_set.h"
#include "model/host_facts.h"
#include "policy/policy_error.h"
#include "policy/source_text.h"

namespace wq {

// The CPUs that a cpumask of the policy names (empty if it names none), and the place of the value.
struct PlacedMask {
    CpuSet cpus;
    bool of_default = false;  // of [default_mask]: the last one replaces the others
    const SourceText* text = nullptr;
    Place place;
};

// Adds LATER, the masks of a later source, to MASKS.
void add_masks(std::vector<PlacedMask>& masks, const std::vector<PlacedMask>& later);

// Whether any of MASKS names CPUs.
bool names_cpus(const std::vector<PlacedMask>& masks);

// Returns an error for each of MASKS that is not valid on a host with CPUS: it names CPUs that are not
// possible there, or that are isolated. The kernel would silently drop the former (kernel/workqueue.c,
// apply_wqattrs_prepare()) and run unbound work on the latter. No errors if the possible CPUs are not known.
// Ordered like MASKS.
PolicyErrors errors_about(const std::vector<PlacedMask>& masks, const HostCpus& cpus);

}  // namespace wq
