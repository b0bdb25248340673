/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Access to the kernel's static variables for programs of type syscall. BTF does not describe them.
 * kallsyms lists them, and this helper reads kallsyms even if a sandbox hides /proc/kallsyms. */
#pragma once

#include "kernel_types.h"

/* Set before loading. */
const volatile __u32 nr_cpus;    /* highest possible CPU plus one */
const volatile __u32 mask_bytes; /* size of a CPU mask, a multiple of 8 */

/* Gets the address of the variable NAME, a string literal. Returns a negative errno: -EPERM if the
 * process may not see addresses (CAP_SYSLOG, kernel.kptr_restrict), -ENOENT if kallsyms has no such name. */
#define find_variable(name, address) bpf_kallsyms_lookup_name(name, sizeof(name), 0, address)

static __always_inline int read_mask(void* to, const void* mask) {
    return bpf_probe_read_kernel(to, mask_bytes, mask);
}

/* cpumask_var_t is a pointer with CONFIG_CPUMASK_OFFSTACK, else the mask itself. CO-RE only matches
 * fields of the same kind. */
#define MASK_IS_POINTER bpf_core_field_exists(((struct workqueue_attrs*)0)->cpumask)

/* Reads element INDEX of an array of cpumask_var_t. */
static __always_inline int read_mask_var(void* to, __u64 array, __u32 index) {
    __u64 mask = array + index * bpf_core_type_size(struct cpumask);
    if (MASK_IS_POINTER && bpf_probe_read_kernel(&mask, sizeof(mask), (void*)array + index * sizeof(mask)))
        return -1;
    return read_mask(to, (void*)mask);
}
