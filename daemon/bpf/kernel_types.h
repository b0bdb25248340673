/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* The kernel's structures, reduced to the members that our BPF programs read. Their offsets are found on the
 * running kernel when a program is loaded (CO-RE), so their order and gaps do not matter. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf_shared.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
    struct list_head *next, *prev;
};

enum wq_affn_scope {
    WQ_AFFN_DFL,
    WQ_AFFN_CPU,
    WQ_AFFN_SMT,
    WQ_AFFN_CACHE_SHARD, /* since 7.1 */
    WQ_AFFN_CACHE,
    WQ_AFFN_NUMA,
    WQ_AFFN_SYSTEM
};
enum wq_flags {
    WQ_BH = 1 << 0, /* since 6.9 */
    WQ_UNBOUND = 1 << 1,
    WQ_FREEZABLE = 1 << 2,
    WQ_MEM_RECLAIM = 1 << 3,
    WQ_HIGHPRI = 1 << 4,
    WQ_CPU_INTENSIVE = 1 << 5,
    WQ_SYSFS = 1 << 6,
    WQ_POWER_EFFICIENT = 1 << 7,
    __WQ_ORDERED = 1 << 17
};
enum worker_pool_flags { POOL_BH = 1 << 0 }; /* since 6.9 */
enum pool_workqueue_stats {
    PWQ_STAT_STARTED,
    PWQ_STAT_COMPLETED,
    PWQ_STAT_CPU_TIME,
    PWQ_STAT_CPU_INTENSIVE,
    PWQ_STAT_CM_WAKEUP,
    PWQ_STAT_REPATRIATED,
    PWQ_STAT_MAYDAY,
    PWQ_STAT_RESCUED,
};

typedef struct {
    __s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t;

enum work_bits { WORK_STRUCT_PENDING_BIT, WORK_STRUCT_INACTIVE_BIT, WORK_STRUCT_PWQ_BIT };
struct work_struct {
    atomic_long_t data;
    void* func;
};

struct cpumask {
    unsigned long bits[1];
};

struct workqueue_attrs {
    int nice;
    struct cpumask* cpumask;
    struct cpumask* __pod_cpumask;
    bool affn_strict;
    enum wq_affn_scope affn_scope;
};

/* Without CONFIG_CPUMASK_OFFSTACK. */
struct workqueue_attrs___whole {
    struct cpumask cpumask[1];
    struct cpumask __pod_cpumask[1];
};

struct wq_pod_type {
    int nr_pods;
    void* pod_cpus; /* cpumask_var_t* */
    int* pod_node;
};

struct worker_pool {
    int cpu;
    int node;
    int id;
    unsigned int flags;
    int nr_workers;
    int nr_idle;
    struct workqueue_attrs* attrs;
    int refcnt;
};

struct xarray {
    void* xa_head;
};
struct xa_node {
    unsigned char shift;
    void* slots[64]; /* a power of two */
};
struct idr {
    struct xarray idr_rt;
};

struct pool_workqueue;
struct wq_device;
struct worker;

struct workqueue_struct {
    struct list_head pwqs;
    struct list_head list;
    struct worker* rescuer;
    int max_active; /* since 6.9 */
    int saved_max_active;
    struct workqueue_attrs* unbound_attrs;
    struct pool_workqueue* dfl_pwq;
    struct pool_workqueue** cpu_pwq; /* per CPU */
    struct wq_device* wq_dev;        /* only with CONFIG_SYSFS */
    char name[32];                   /* 24 before 6.9 */
    unsigned int flags;
};

/* 7.3 gave unbound_attrs another name. */
struct workqueue_struct___7_3 {
    struct workqueue_attrs* attrs;
};

struct pool_workqueue {
    struct worker_pool* pool;
    struct workqueue_struct* wq;
    int refcnt;
    int nr_in_flight[16]; /* WORK_NR_COLORS */
    struct list_head pwqs_node;
    __u64 stats[8];
};

struct task_struct;
struct worker {
    struct work_struct* current_work;
    void* current_func;
    struct pool_workqueue* current_pwq;
    __u64 current_at; /* the task's sum_exec_runtime when the item began, or last woke up */
    struct task_struct* task;
    struct workqueue_struct* rescue_wq;
};

struct kthread {
    void* data; /* of a kworker: its struct worker */
};

struct sched_entity {
    __u64 sum_exec_runtime; /* ns of CPU time */
};

struct task_struct {
    unsigned int flags;
    struct sched_entity se;
    int pid;
    char comm[16];
    struct cpumask* cpus_ptr;
    void* worker_private; /* of a kernel thread: its struct kthread */
};

struct seq_file;
struct bpf_iter_meta {
    struct seq_file* seq;
};
struct bpf_iter__task {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
};

#pragma clang attribute pop

#define PF_WQ_WORKER 0x20

/* Returns OBJ as a read-only, untrusted pointer to the type BTF_ID. No cost at run time. */
extern void* bpf_rdonly_cast(const void* obj, __u32 btf_id) __ksym;
#define CAST(type, obj) ((type*)bpf_rdonly_cast((const void*)(obj), bpf_core_type_id_kernel(type)))

/* Identifies ADDRESS by its distance from TABLE, because the verifier forbids arithmetic with the address
 * itself. For a structure, the lower three bits are zero; the upper seven bits repeat the bit below them. */
static __always_inline __u64 number_of(const void* address, const void* table) {
    __u64 number = (__u64)address;
    asm volatile("%0 -= %1" : "+r"(number) : "r"(table));
    return number;
}

/* CPU may be any number: that of an unbound pool is negative. */
static __always_inline bool has_cpu(const volatile __u64* cpus, __u32 cpu) {
    return cpu < WQ_MOST_CPUS && cpus[cpu / 64] >> (cpu % 64) & 1;
}

/* NULL if the workqueue is not unbound. */
static __always_inline struct workqueue_attrs* attrs_of(const struct workqueue_struct* wq) {
    if (bpf_core_field_exists(wq->unbound_attrs)) return wq->unbound_attrs;
    return ((const struct workqueue_struct___7_3*)wq)->attrs;
}

/* An installed pool_workqueue holds one reference to itself, and each item in flight holds one more; both
 * change only under pool->lock. An item counts a moment before it takes its reference, and no longer counts a
 * moment before it drops it. (When memory is short, the rescuer briefly takes one: then a replaced
 * pool_workqueue looks installed.) */
static __always_inline int own_references(const struct pool_workqueue* pwq) {
    int references = pwq->refcnt;

#pragma unroll
    for (int i = 0; i < 16; i++) references -= pwq->nr_in_flight[i];
    return references;
}

/* Before 6.9 enum wq_flags and enum work_bits had no name, and the same values; bit 0 (WQ_BH) was not used.
 */
#define VALUE_OF(type, name) \
    (bpf_core_enum_value_exists(enum type, name) ? bpf_core_enum_value(enum type, name) : (__u64)name)

/* Whether the module parameter default_affinity_scope applies to WQ. */
static __always_inline bool follows_default(const struct workqueue_struct* wq) {
    struct workqueue_attrs* attrs = attrs_of(wq);
    unsigned int flags = wq->flags;

    if (!(flags & VALUE_OF(wq_flags, WQ_UNBOUND)) || flags & VALUE_OF(wq_flags, __WQ_ORDERED)) return false;
    return attrs && attrs->affn_scope == bpf_core_enum_value(enum wq_affn_scope, WQ_AFFN_DFL);
}
