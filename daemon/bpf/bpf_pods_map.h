// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "bpf/bpf_masks.h"
#include "bpf/bpf_shared.h"
#include "machine/kernel_info.h"

struct bpf_map;

namespace wq {

// Sets the size of MAP, before an object with the program of pods_program.h is loaded.
void make_room_for_pods(bpf_map* map, const MaskLayout& layout);
// Reads MAP after the program has run. NR_PODS: the program's result.
Result<KernelPods> read_pods_map(const bpf_map* map, const __s32 (&nr_pods)[WQ_SCOPES],
                                 const MaskLayout& layout);

}  // namespace wq
