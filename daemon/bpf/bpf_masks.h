// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <linux/types.h>

#include <cstdint>

#include "base/cpu_set.h"
#include "base/result.h"

struct bpf_program;

namespace wq {

// Values for kernel_variables.h, set before a program is loaded.
struct MaskLayout {
    CpuSet possible;
    std::uint32_t nr_cpus = 0;     // highest possible CPU plus one
    std::uint32_t mask_bytes = 0;  // size of a mask, a multiple of 8
};
Result<MaskLayout> read_mask_layout();

CpuSet cpus_of_mask(const __u64* mask, std::uint32_t mask_bytes);

// Runs PROGRAM, of type syscall, once. Error: the negative errno that it returned. EPERM and ENOENT come
// from find_variable(), and the error text explains them. The text starts with WHAT.
Status run_once(const bpf_program* program, const std::string& what);

}  // namespace wq
