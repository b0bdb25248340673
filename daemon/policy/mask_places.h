// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "base/cpu_set.h"
#include "model/host_facts.h"
#include "policy/policy_error.h"
#include "policy/source_text.h"

namespace wq {

// The CPUs that a cpumask of the policy names, none where it names none, and the place of the value.
struct PlacedMask {
    CpuSet cpus;
    bool of_default = false;  // of [default_mask]: the last one replaces the others
    const SourceText* text = nullptr;
    Place place;
};

// Adds LATER, those of a later source, to MASKS.
void add_masks(std::vector<PlacedMask>& masks, const std::vector<PlacedMask>& later);

// Whether any of MASKS names CPUs.
bool names_cpus(const std::vector<PlacedMask>& masks);

// An error for each of MASKS that is not one for a host with CPUS: it names CPUs that are not possible there,
// or CPUs that are isolated. The kernel would leave out the former in silence (kernel/workqueue.c,
// apply_wqattrs_prepare()), and have the latter do unbound work. None where the possible CPUs are not known.
// Ordered like MASKS.
PolicyErrors errors_about(const std::vector<PlacedMask>& masks, const HostCpus& cpus);

}  // namespace wq
