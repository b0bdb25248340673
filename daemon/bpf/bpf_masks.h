// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <linux/types.h>

#include <cstdint>

#include "base/cpu_set.h"
#include "base/result.h"

struct bpf_program;

namespace wq {

// What kernel_variables.h wants to know before a program is loaded.
struct MaskLayout {
    CpuSet possible;
    std::uint32_t nr_cpus = 0;     // possible CPUs end here
    std::uint32_t mask_bytes = 0;  // of a mask, a multiple of 8
};
Result<MaskLayout> read_mask_layout();

CpuSet cpus_of_mask(const __u64* mask, std::uint32_t mask_bytes);

// Runs PROGRAM, of the type syscall, once. Errors: what it returned, a negative errno; EPERM and ENOENT are
// find_variable()'s, and the text says what they mean. WHAT it reads begins the text.
Status run_once(const bpf_program* program, const std::string& what);

}  // namespace wq
