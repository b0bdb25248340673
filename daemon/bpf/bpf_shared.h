/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* What our BPF programs hand over, and the buckets of their histogram: C, for both sides. */
#pragma once

#include <linux/types.h>

/* A bucket is exact below 128 ns; above, each octave has 128, so that one is at most 1/128 of its value wide.
 * What takes 2^40 ns (18 min) or more is in the last. */
enum { WQ_BUCKETS = (40 - 7 + 1) * 128 };

/* CPUs share WQ_STRIPES sets of sums: one each would be too much memory where there are many, and one for all
 * too much traffic between them. */
enum { WQ_STRIPES = 8 };

/* Targets of the counters. */
enum { WQ_TARGETS = 16 };

/* What a CPU keeps. */
struct wq_cpu {
    __u64 work; /* to be timed, between the entry of __queue_work() and pool->lock; else 0 */
    __u64 time; /* of that entry */
    __u64 tag;  /* of its window */
    struct {
        __u32 queued; /* items in windows; wraps around */
        __u32 left;   /* not to be timed, before the next one is */
    } targets[WQ_TARGETS];
};

/* Of the timed items of one target's window, by WQ_STRIPES. Sums in ns. */
struct wq_sums {
    __u64 timed;
    __u64 lock;
    __u64 latency; /* of items that ended, and ages of those that are open */
    __u64 exec;    /* the same, of those that started */
    __u32 stuck;
    __u32 ended;
    __u32 pending; /* open, not started */
    __u32 running; /* open, started */
    __u64 padding[2];
};

/* Queueing to start, and ages of what is pending. */
struct wq_histogram {
    __u32 waited[WQ_BUCKETS];
};

/* The bucket of NS where each octave has 2^BITS of them, BITS a constant. */
static inline __u32 wq_bucket_by(__u64 ns, __u32 bits) {
    __u32 log2 = 0;
    if (ns < 1u << bits) return (__u32)ns;
    if (ns >> 40) return ((40 - bits + 1) << bits) - 1;
    for (__u32 step = 32; step; step >>= 1) {
        if (ns >> (log2 + step)) log2 += step;
    }
    /* ns >> (log2 - bits) is 2^bits to 2^(bits + 1) - 1. */
    return ((log2 - bits) << bits) + (__u32)(ns >> (log2 - bits));
}

static inline __u32 wq_bucket(__u64 ns) {
    return wq_bucket_by(ns, 7);
}

/* CPUs that can be watched: the largest NR_CPUS of any architecture. */
enum { WQ_MOST_CPUS = 16384 };

/* Work that started on watched CPUs. No workqueue: it ran in a soft interrupt, which has no worker that
 * tells. */
struct wq_watch_key {
    char workqueue[32];
    __u64 function;
    __u64 per_cpu;
};
struct wq_watched {
    __u64 items;
    char function[96]; /* its name, and the module's: "kcryptd_crypt [dm_crypt]" */
};

/* The affinity scopes, in the order of wq::Scope. */
enum { WQ_SCOPES = 6 };

/* One pod of a scope. */
struct wq_pod {
    __s64 node;
    __u64 mask[]; /* as many bytes as mask_bytes says */
};

/* The largest MAX_NUMNODES of any architecture. */
enum { WQ_MOST_NODES = 1024 };

struct wq_mask {
    __u64 words[WQ_MOST_CPUS / 64];
};

/* What dump shows of a worker pool. */
struct wq_pool {
    __s32 id;
    __s32 refs;
    __s32 nice;
    __s32 idle;
    __s32 workers;
    __s32 cpu; /* negative: unbound */
    __s32 node;
    __u8 strict;
    __u8 bh;
    struct wq_mask cpus;
    struct wq_mask pod_cpus;
};
enum { WQ_POOLS = 64 }; /* that one run hands over */

enum wq_dump_flags {
    WQ_DUMP_UNBOUND = 1 << 0,
    WQ_DUMP_BH = 1 << 1,
    WQ_DUMP_ORDERED = 1 << 2,
    WQ_DUMP_MEM_RECLAIM = 1 << 3,
    WQ_DUMP_HIGHPRI = 1 << 4,
    WQ_DUMP_CPU_INTENSIVE = 1 << 5,
    WQ_DUMP_SYSFS = 1 << 6,
    WQ_DUMP_FREEZABLE = 1 << 7,
    WQ_DUMP_POWER_EFFICIENT = 1 << 8,
};
enum { WQ_SCOPE_DEFAULT = -1, WQ_SCOPE_UNKNOWN = -2 }; /* beside the indices of wq::Scope */

/* And of a workqueue. */
struct wq_dumped {
    char name[32];
    __u32 flags; /* enum wq_dump_flags */
    __s32 max_active;
    __s32 default_pool; /* negative: none, as here below */
    __s32 pools[WQ_MOST_CPUS];
    __u8 has_attrs; /* for the next four */
    __u8 strict;
    __s32 scope;
    __s32 nice;
    struct wq_mask cpus;
    __s32 nr_nodes; /* 0: this kernel does not count by node. The last one is for no node */
    struct {
        __s32 active;
        __s32 max;
    } nodes[WQ_MOST_NODES + 1];
    __s32 rescuer_pid; /* 0: none */
    char rescuer_name[16];
    struct wq_mask rescuer_cpus;
};

/* One workqueue, as the kernel has it. */
struct wq_record {
    __u64 address;
    __u64 pools; /* changes with its pool_workqueues, and with nothing else */
    /* Of all its pool_workqueues, the kernel's PWQ_STAT_* of these names. */
    __u64 started;
    __u64 completed;
    __u64 cpu_time; /* us, in whole ticks */
    __u64 cpu_intensive;
    __u64 cm_wakeup;
    __u64 repatriated;
    __u64 mayday;
    __u64 rescued;
    __u8 in_sysfs;
    __u8 follows_default;
    __u8 unbound;
    __u8 mem_reclaim;
    __u8 bh;
    __u8 managed; /* its workers, by concurrency: per-CPU, neither bh nor CPU-intensive */
    __u8 padding[2];
    char name[32];
};

/* What the kernel has counted on the pool_workqueues that are in place, of a target of the counters. */
struct wq_edge {
    __u64 pools; /* changes with these pool_workqueues, and with nothing else; 0: there are none */
    __u64 started;
    __u64 completed;
    __u64 cpu_time; /* us, in whole ticks */
};

/* ---- top */

/* Eight buckets to an octave. */
enum { WQ_TOP_BITS = 3, WQ_TOP_BUCKETS = (40 - WQ_TOP_BITS + 1) << WQ_TOP_BITS };

/* Of one workqueue, since the programs were loaded. */
struct wq_times {
    struct {
        __u64 queued;                 /* items whose wait for pool->lock is in `lock` */
        __u64 lock;                   /* ns */
        __u32 waited[WQ_TOP_BUCKETS]; /* queueing to start; wraps around */
    } stripes[WQ_STRIPES];
};

struct wq_function_key {
    __u64 workqueue;
    __u64 function;
};
struct wq_function {
    __u64 items; /* that ended */
    __u64 busy;  /* ns from their start to their end */
    char name[96];
};
