/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* What our BPF programs hand over, and the buckets of their histogram: C, for both sides. */
#pragma once

#include <linux/types.h>

/* A bucket is exact below 128 ns; above, each octave has 128, so that one is at most 1/128 of its value wide.
 * What takes 2^40 ns (18 min) or more is in the last. */
enum { WQ_BUCKETS = (40 - 7 + 1) * 128 };

/* Per CPU and window. Sums in ns. Those above the line are of items when they are queued, those below of
 * items when they end. */
struct wq_slot {
    __u64 queued;
    __u64 lock;
    __u64 stuck;
    __u64 lost;
    /* ---- */
    __u64 latency;
    __u64 exec;
    __u32 waited[WQ_BUCKETS]; /* queueing to start: one for each item that ended */
};

static inline __u32 wq_bucket(__u64 ns) {
    __u32 log2 = 0;
    if (ns < 128) return (__u32)ns;
    if (ns >> 40) return WQ_BUCKETS - 1;
    for (__u32 step = 32; step; step >>= 1) {
        if (ns >> (log2 + step)) log2 += step;
    }
    /* ns >> (log2 - 7) is 128 to 255. */
    return (log2 - 7) * 128 + (__u32)(ns >> (log2 - 7));
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

/* One workqueue, as the kernel has it. */
struct wq_record {
    __u64 address;
    __u64 started; /* items, by all its pool_workqueues (PWQ_STAT_STARTED) */
    __u8 in_sysfs;
    __u8 follows_default;
    __u8 padding[6];
    char name[32];
};
