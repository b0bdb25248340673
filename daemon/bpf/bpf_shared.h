/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Data that our BPF programs share with user space, and the buckets of their histograms. C, because both
 * sides include it. */
#pragma once

#include <linux/types.h>

/* Below 128 ns, a bucket is 1 ns wide. Above, each octave has 128 buckets, so a bucket is at most 1/128 of
 * its value wide. Times of 2^40 ns (18 min) or more are in the last bucket. */
enum { WQ_BUCKETS = (40 - 7 + 1) * 128 };

/* CPUs share WQ_STRIPES sets of sums. One set per CPU would need too much memory on large machines, and a
 * single set would cause too much cache traffic between CPUs. */
enum { WQ_STRIPES = 8 };

/* Targets of the counters. */
enum { WQ_TARGETS = 16 };

/* State of one CPU. */
struct wq_cpu {
    __u64 work;    /* work to be timed, from the entry of __queue_work() until pool->lock is held; else 0 */
    __u64 time;    /* time of that entry, ns */
    __u64 tag;     /* tag of its window */
    __u64 leaving; /* timed work that is queued, until __queue_work() returns; else 0 */
    struct {
        __u32 queued; /* items in windows; wraps around */
        __u32 left;   /* items to skip before the next one is timed */
    } targets[WQ_TARGETS];
};

/* Sums over the timed items of one target's window, per stripe. Times in ns. */
struct wq_sums {
    __u64 timed;
    __u64 lock;
    __u64 latency; /* of items that ended, and the ages of open items */
    __u64 exec;    /* the same since the start, for items that started */
    __u32 stuck;
    __u32 ended;
    __u32 pending; /* open, not started */
    __u32 running; /* open, started */
    __u64 padding[2];
};

/* Times from queueing to start, and the ages of pending items. */
struct wq_histogram {
    __u32 waited[WQ_BUCKETS];
};

/* The bucket of NS if each octave has 2^BITS buckets. BITS must be a constant. */
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

/* Buckets of times of which a percentile to 12% is enough: eight per octave. */
enum { WQ_TIME_BITS = 3, WQ_TIME_BUCKETS = (40 - WQ_TIME_BITS + 1) << WQ_TIME_BITS };

/* Times that producers spent in queue_work() for the timed items of one target's window, per stripe. */
struct wq_enqueued {
    __u64 ns; /* all together */
    __u32 items[WQ_TIME_BUCKETS];
};

/* The largest NR_CPUS of any architecture. */
enum { WQ_MOST_CPUS = 16384 };

/* The affinity scopes, in the order of wq::Scope. */
enum { WQ_SCOPES = 6 };

/* One pod of a scope. */
struct wq_pod {
    __s64 node;
    __u64 mask[]; /* mask_bytes bytes */
};

struct wq_mask {
    __u64 words[WQ_MOST_CPUS / 64];
};

/* A worker pool as read by dump.bpf.c. */
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
enum { WQ_POOLS = 64 }; /* most pools per run */

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
enum { WQ_SCOPE_DEFAULT = -1, WQ_SCOPE_UNKNOWN = -2 }; /* in addition to the indices of wq::Scope */

/* A workqueue as read by dump.bpf.c. */
struct wq_dumped {
    char name[32];
    __u32 flags; /* enum wq_dump_flags */
    __s32 max_active;
    __s32 default_pool; /* negative: none; also in pools[] */
    __s32 pools[WQ_MOST_CPUS];
    __u8 has_attrs; /* whether the next four are set */
    __u8 strict;
    __s32 scope;
    __s32 nice;
    struct wq_mask cpus;
    __s32 rescuer_pid; /* 0: none */
    char rescuer_name[16];
    struct wq_mask rescuer_cpus;
};

/* One workqueue as read from the kernel. */
struct wq_record {
    __u64 address;
    __u64 pools; /* a hash: changes only when its pool_workqueues change */
    /* Sums of the kernel's PWQ_STAT_* of the same names over all its pool_workqueues. */
    __u64 started;
    __u64 completed;
    __u64 cpu_time; /* us, in whole ticks */
    __u64 cpu_intensive;
    __u64 cm_wakeup;
    __u64 repatriated;
    __u64 mayday;
    __u64 rescued;
    __u64 in_flight;     /* queued or running; not if unbound_only */
    __u64 all_completed; /* if for_health: also on replaced pool_workqueues */
    __u8 in_sysfs;
    __u8 follows_default;
    __u8 unbound;
    __u8 mem_reclaim;
    __u8 bh;
    __u8 managed; /* concurrency-managed: per-CPU, neither bh nor CPU-intensive */
    __u8 padding[2];
    char name[32];
};

/* What the kernel has counted for a target of the counters, on the installed pool_workqueues. */
struct wq_edge {
    __u64 pools; /* a hash: changes only when these pool_workqueues change; 0: there are none */
    __u64 started;
    __u64 completed;
    __u64 cpu_time;     /* us, in whole ticks */
    __u32 worker_pools; /* distinct ones behind them */
    __u32 workers;      /* of these pools */
    __u32 uncounted;    /* there was no room for the mark of a pool */
    __u32 padding;
};

/* ---- top */

/* Times of one workqueue since the programs were loaded. */
struct wq_times {
    struct {
        __u64 queued;                    /* items whose wait for pool->lock is in `lock` */
        __u64 lock;                      /* ns */
        __u32 waited[WQ_TIME_BUCKETS];   /* queueing to start; wraps around */
        __u32 enqueued[WQ_TIME_BUCKETS]; /* entry to return of __queue_work(); wraps around */
    } stripes[WQ_STRIPES];
};

struct wq_function_key {
    __u64 workqueue;
    __u64 function;
};
struct wq_function {
    __u64 items; /* that ended */
    __u64 busy;  /* ns from their start to their end */
    char function[96];
};

/* A kworker that ran a function for a workqueue when a scheduler tick came. */
struct wq_ran_key {
    __u64 workqueue;
    __u64 function;
    __u64 pid;
};
struct wq_ran {
    __u64 ticks;
    __u64 longest; /* ns of CPU time that one item had used without a sleep */
    char comm[16];
    char function[96]; /* its name, and the module's: "kcryptd_crypt [dm_crypt]" */
};
