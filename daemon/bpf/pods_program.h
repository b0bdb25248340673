/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Reads the pods of each affinity scope, which kernel/workqueue.c makes at boot and never changes.
 * Several BPF objects include this program, because loading a second object costs as much as a complete
 * dump. */
#pragma once

#include <linux/errno.h>

#include "bpf_shared.h"
#include "kernel_types.h"
#include "kernel_variables.h"

/* The pods of scope S begin at S * nr_cpus. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct wq_pod));
} pods SEC(".maps");

__s32 nr_pods[WQ_SCOPES]; /* 0: this kernel does not have the scope */

struct pods_walk {
    __u64 type;
    __u32 scope;
    int error;
};

static long read_pod(__u32 i, struct pods_walk* walk) {
    struct wq_pod_type* type = CAST(struct wq_pod_type, walk->type);
    __u32 key = walk->scope * nr_cpus + i;
    struct wq_pod* pod = bpf_map_lookup_elem(&pods, &key);
    int node;

    if (!pod || bpf_probe_read_kernel(&node, sizeof(node), type->pod_node + i) ||
        read_mask_var(pod->mask, (__u64)type->pod_cpus, i)) {
        walk->error = -EFAULT;
        return 1;
    }
    pod->node = node;
    return 0;
}

static __always_inline int read_scope(__u64 types, __u32 scope, __u32 index) {
    struct pods_walk walk = {.type = types + index * bpf_core_type_size(struct wq_pod_type), .scope = scope};
    int nr = CAST(struct wq_pod_type, walk.type)->nr_pods;

    if (nr < 0 || nr > nr_cpus) return -ERANGE;
    nr_pods[scope] = nr;
    bpf_loop(nr, read_pod, &walk, 0);
    return walk.error;
}

#define READ_SCOPE(scope, name)                                         \
    if (!error && bpf_core_enum_value_exists(enum wq_affn_scope, name)) \
    error = read_scope(types, scope, bpf_core_enum_value(enum wq_affn_scope, name))

SEC("syscall")
int wqt_pods(void* ctx) {
    __u64 types;
    int error = find_variable("wq_pod_types", &types);

    READ_SCOPE(0, WQ_AFFN_CPU);
    READ_SCOPE(1, WQ_AFFN_SMT);
    READ_SCOPE(2, WQ_AFFN_CACHE_SHARD);
    READ_SCOPE(3, WQ_AFFN_CACHE);
    READ_SCOPE(4, WQ_AFFN_NUMA);
    READ_SCOPE(5, WQ_AFFN_SYSTEM);
    return error;
}
