/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Shared code of the programs that follow work items. A program first defines, for its table of the items
 * that wait, PENDING_BITS, KEY_SHIFT, TAG_MASK and PENDING_MORE (members of an entry). */
#pragma once

#include "kernel_types.h"

/* Set before loading: whether bpf_preempt_disable() exists. */
const volatile __u32 preemptible;

/* A call of the NUMBER-th of the kernel's functions that name_calls() of skeleton.h knows. It sets the BTF id
 * in the place of NUMBER. (For an extern that the kernel lacks, libbpf before 1.5 needs CAP_SYS_ADMIN.) */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CALL_OF(number) (0x2085ull | (number##ull << 32)) /* BPF_CALL, BPF_PSEUDO_KFUNC_CALL */
#else
#define CALL_OF(number) (0x8502ull << 48 | number##ull)
#endif
#define CALL(number) \
    asm volatile(".8byte %0" ::"i"(CALL_OF(number)) : "r0", "r1", "r2", "r3", "r4", "r5", "memory")

/* Since 7.0 a program at a tracepoint can be preempted. Until it continues, the kernel skips the program for
 * all other tasks on that CPU. The items that it misses show as unfinished or lost. The same kernels have
 * bpf_preempt_disable(), which prevents this except for a few instructions at either end. */
static __always_inline void hold_cpu(void) {
    if (preemptible) CALL(0);
}
static __always_inline void release_cpu(void) {
    if (preemptible) CALL(1);
}

/* The worker of the CURRENT task; NULL if it is not a kworker. (Work in softirqs has no worker.) */
static __always_inline struct worker* worker_of(__u64 current) {
    struct task_struct* task = CAST(struct task_struct, current);

    if (!(task->flags & PF_WQ_WORKER)) return NULL;
    return CAST(struct worker, CAST(struct kthread, task->worker_private)->data);
}

static __always_inline __u64 wq_hash(__u64 number) {
    return (number >> 3) * 0x9e3779b97f4a7c15ull;
}

#define MAP(kind, name, entries, key_type, value_type) \
    struct {                                           \
        __uint(type, kind);                            \
        __uint(max_entries, entries);                  \
        __type(key, key_type);                         \
        __type(value, value_type);                     \
    } name SEC(".maps")

#define HASH(name, entries, key_type, value_type) MAP(BPF_MAP_TYPE_HASH, name, entries, key_type, value_type)
#define ARRAY(name, entries, value_type) MAP(BPF_MAP_TYPE_ARRAY, name, entries, __u32, value_type)

/* A value for each CPU. NAME_here() returns that of this CPU; the verifier wants a test for NULL. */
#define PER_CPU(name, value_type)                               \
    MAP(BPF_MAP_TYPE_PERCPU_ARRAY, name, 1, __u32, value_type); \
    static __always_inline value_type* name##_here(void) {      \
        __u32 zero = 0;                                         \
        return bpf_map_lookup_elem(&name, &zero);               \
    }

/* The entry of KEY in the hash MAP; NULL if there is no room. A new one gets the name of KEY's function,
 * because only the kernel may look it up, and what MORE sets in `first`. */
#define entry_of(map, key, value_type, more)                                              \
    ({                                                                                    \
        value_type* here = bpf_map_lookup_elem(map, key);                                 \
        if (!here) {                                                                      \
            value_type first = {};                                                        \
            more;                                                                         \
            BPF_SNPRINTF(first.function, sizeof(first.function), "%ps", (key)->function); \
            bpf_map_update_elem(map, key, &first, BPF_NOEXIST);                           \
            here = bpf_map_lookup_elem(map, key);                                         \
        }                                                                                 \
        here;                                                                             \
    })

#define WAYS 4
#define CACHE_LINE __attribute__((aligned(64)))

/* number_of(work) << KEY_SHIFT | tag. The shift loses no information. 0: the entry is free. */
typedef __u64 key_t;

/* Items that were queued and have not started. Cancelled items stay until their entry is needed. */
struct pending {
    key_t key;
    __u64 queued;
    PENDING_MORE
};
static struct pending pending[1 << PENDING_BITS][WAYS] CACHE_LINE;

static __always_inline key_t key_of(__u64 number, __u32 tag) {
    return number << KEY_SHIFT | tag;
}

static __always_inline bool same_work(key_t a, key_t b) {
    return !((a ^ b) & ~(key_t)TAG_MASK);
}

static __always_inline struct pending* pending_set(__u64 number) {
    return pending[wq_hash(number) >> (64 - PENDING_BITS)];
}

/* Removes the entry of a work from its set and copies it to OUT. Returns its key; 0 if there is none. */
static __always_inline key_t take(__u64 number, struct pending* out) {
    struct pending* set = pending_set(number);
    key_t wanted = key_of(number, 0);

#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        key_t key = set[i].key;
        if (!same_work(key, wanted)) continue;
        *out = set[i];
        return __sync_val_compare_and_swap(&set[i].key, key, 0) == key ? key : 0;
    }
    return 0;
}
