/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Times the work of all workqueues, for `wq-tunectl top` and `diagnose`.
 *
 * __queue_work          the time is stored for this CPU; interrupts are off until it returns
 * workqueue_queue_work  pool->lock is held: the wait for it is added up, {work, time, workqueue} is stored
 * __queue_work          returns: the time that the producer spent goes into a histogram
 * workqueue_execute_start  the waiting time of the item goes into the workqueue's histogram
 * workqueue_execute_end    the run time of the item is added to its function; only if functions are wanted
 * wq_worker_tick        a scheduler tick that finds a kworker running is a sample of its function; only if
 *                       wanted. The kernel counts PWQ_STAT_CPU_TIME here too, so both agree. It costs nothing
 *                       per item. A CPU without a tick (nohz_full) is not seen
 *
 * Sums only grow; readers take differences. The limits are those of counters.bpf.c: a work may be queued
 * again before its start is seen (then the later time is used and the earlier item is lost), and since 7.0
 * some items are missed. Of the kernel's own counts (workqueues.bpf.c), the number of started items is
 * exact. */
#define PENDING_BITS 13
#define PENDING_MORE __u64 workqueue;
#define KEY_SHIFT 0
#define TAG_MASK 0
#include "bpf_shared.h"
#include "bpf_work.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before loading. */
const volatile __u32 functions_too;
const volatile __u32 exit_seen; /* whether wqt_top_leave is loaded; then wqt_top_enter is too */

HASH(times, 512, __u64, struct wq_times); /* by workqueue_struct */
static struct wq_times no_times;          /* too large for the stack */

HASH(functions, 1024, struct wq_function_key, struct wq_function);
HASH(ran, 4096, struct wq_ran_key, struct wq_ran);

__u64 lost;       /* items for which there was no room, or that were queued again */
__u64 lost_ticks; /* for which there was no room */

/* The item that a worker runs or, for work in softirqs, which has no worker, that the CPU runs. */
struct item {
    __u64 work;
    __u64 started;
    struct wq_function_key key;
};
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct item);
} running SEC(".maps");
PER_CPU(running_softly, struct item)

static __always_inline void lose(void) {
    __sync_fetch_and_add(&lost, 1);
}

/* The sums of WORKQUEUE; NULL if there is no room. */
static __always_inline struct wq_times* times_of(__u64 workqueue) {
    struct wq_times* sums = bpf_map_lookup_elem(&times, &workqueue);

    if (sums) return sums;
    bpf_map_update_elem(&times, &workqueue, &no_times, BPF_NOEXIST);
    return bpf_map_lookup_elem(&times, &workqueue);
}

/* The entry for the times of a work: its earlier entry, else a free one, else the oldest one. */
static __always_inline struct pending* place_for(struct pending* set, __u64 number) {
    struct pending* oldest = set;

#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        if (set[i].key == number) return &set[i];
    }
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        if (!set[i].key) return &set[i];
        if (set[i].queued < oldest->queued) oldest = &set[i];
    }
    return oldest;
}

struct entered {
    __u64 work; /* until pool->lock is held; then it is `leaving`, if its return is to be seen */
    __u64 time;
    __u64 leaving;
};
PER_CPU(entered, struct entered)

/* Returns when __queue_work() was entered for WORK; 0 if that was not seen. */
static __always_inline __u64 entry_of_work(__u64 work) {
    struct entered* here = entered_here();

    if (!here || here->work != work) return 0;
    here->work = 0;
    return here->time;
}

/* WORK, whose entry was seen, is queued. The time from SINCE to now was not spent by the producer. */
static __always_inline void stay(__u64 work, __u64 since) {
    struct entered* here = entered_here();

    if (!here) return;
    here->leaving = work;
    here->time += bpf_ktime_get_ns() - since;
}

SEC("fentry/__queue_work")
int BPF_PROG(wqt_top_enter, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    struct entered* here = entered_here();

    if (!here) return 0;
    here->leaving = 0;
    here->work = (__u64)work;
    here->time = bpf_ktime_get_ns();
    return 0;
}

/* Stores that the work with this NUMBER was queued. */
static __always_inline void put(__u64 number, __u64 workqueue, __u64 queued) {
    struct pending* place = place_for(pending_set(number), number);
    __u64 before = place->key;

    if (before) lose();
    if (__sync_val_compare_and_swap(&place->key, before, number) != before) {
        lose(); /* another CPU was quicker */
        return;
    }
    /* The worker reads these after it took pool->lock, which is held here. */
    place->queued = queued;
    place->workqueue = workqueue;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(wqt_top_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* work) {
    __u64 workqueue = (__u64)pwq->wq, now = bpf_ktime_get_ns(), entered_at;
    struct wq_times* sums = times_of(workqueue);
    __u32 stripe;

    if (!sums) {
        lose();
        return 0;
    }
    entered_at = entry_of_work((__u64)work);
    if (entered_at) {
        stripe = bpf_get_smp_processor_id() % WQ_STRIPES;
        __sync_fetch_and_add(&sums->stripes[stripe].queued, 1);
        __sync_fetch_and_add(&sums->stripes[stripe].lock, now - entered_at);
    }
    put(number_of(work, pending), workqueue, entered_at ?: now);
    if (exit_seen && entered_at) stay((__u64)work, now);
    return 0;
}

SEC("fexit/__queue_work")
int BPF_PROG(wqt_top_leave, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    struct entered* here = entered_here();
    __u64 workqueue = (__u64)wq, ns;
    struct wq_times* sums;
    __u32 bucket;

    if (!here || here->leaving != (__u64)work) return 0;
    here->leaving = 0;
    ns = bpf_ktime_get_ns() - here->time;
    bucket = wq_bucket_by(ns, WQ_TIME_BITS);
    sums = bpf_map_lookup_elem(&times, &workqueue);
    if (!sums || bucket >= WQ_TIME_BUCKETS) return 0;
    __sync_fetch_and_add(&sums->stripes[bpf_get_smp_processor_id() % WQ_STRIPES].enqueued[bucket], 1);
    return 0;
}

static __always_inline void add_wait(__u64 workqueue, __u64 waited) {
    struct wq_times* sums = bpf_map_lookup_elem(&times, &workqueue);
    __u32 bucket = wq_bucket_by(waited, WQ_TIME_BITS);

    if (!sums || bucket >= WQ_TIME_BUCKETS) return;
    __sync_fetch_and_add(&sums->stripes[bpf_get_smp_processor_id() % WQ_STRIPES].waited[bucket], 1);
}

/* Where the running item is stored: with the worker, or with the CPU if WORK runs in a softirq. */
static __always_inline struct item* item_of(const struct work_struct* work, __u64 flags) {
    struct worker* worker = worker_of(bpf_get_current_task());

    if (worker && worker->current_work == work)
        return bpf_task_storage_get(&running, bpf_get_current_task_btf(), NULL, flags);
    return running_softly_here();
}

/* Whether WORK runs for WORKQUEUE. It does not if its entry is of a cancelled item and its later queueing was
 * not seen. Work in softirqs has no worker, so this cannot be checked. */
static __always_inline bool runs_for(const struct work_struct* work, __u64 workqueue) {
    struct worker* worker = worker_of(bpf_get_current_task());

    if (!worker || worker->current_work != work) return true;
    return (__u64)worker->current_pwq->wq == workqueue;
}

/* Stores the item that runs here. WORKQUEUE 0: it is not known, so only clears the previous item. */
static __always_inline void note_running(const struct work_struct* work, __u64 workqueue) {
    struct item* item = item_of(work, workqueue ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

    if (!item) {
        if (workqueue) lose();
        return;
    }
    item->work = workqueue ? (__u64)work : 0;
    item->key.workqueue = workqueue;
    item->key.function = (__u64)work->func;
    item->started = bpf_ktime_get_ns();
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(wqt_top_start, struct work_struct* work) {
    struct pending was = {};
    bool known;

    hold_cpu();
    known = take(number_of(work, pending), &was) && runs_for(work, was.workqueue);
    if (known) add_wait(was.workqueue, bpf_ktime_get_ns() - was.queued);
    if (functions_too) note_running(work, known ? was.workqueue : 0);
    release_cpu();
    return 0;
}

static __always_inline void add_function(const struct wq_function_key* key, __u64 busy) {
    struct wq_function* here = entry_of(&functions, key, struct wq_function, );

    if (!here) {
        lose();
        return;
    }
    __sync_fetch_and_add(&here->items, 1);
    __sync_fetch_and_add(&here->busy, busy);
}

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(wqt_top_end, struct work_struct* work) {
    struct item* item;

    hold_cpu();
    item = item_of(work, 0);
    if (item && item->work == (__u64)work) {
        struct wq_function_key key = item->key;
        item->work = 0;
        add_function(&key, bpf_ktime_get_ns() - item->started);
    }
    release_cpu();
    return 0;
}

static __always_inline void count_tick(const struct wq_ran_key* key, struct task_struct* task, __u64 used) {
    struct wq_ran* here =
        entry_of(&ran, key, struct wq_ran, bpf_probe_read_kernel(first.comm, sizeof(first.comm), task->comm));

    if (!here) {
        __sync_fetch_and_add(&lost_ticks, 1);
        return;
    }
    here->ticks++; /* a task runs on one CPU at a time */
    if (used > here->longest) here->longest = used;
}

SEC("fentry/wq_worker_tick")
int BPF_PROG(wqt_top_tick, struct task_struct* task) {
    struct worker* worker = worker_of((__u64)task);
    struct wq_ran_key key = {};
    __u64 now, at;

    if (!worker || !worker->current_pwq) return 0;
    key.workqueue = (__u64)worker->current_pwq->wq;
    key.function = (__u64)worker->current_func;
    key.pid = task->pid;
    now = task->se.sum_exec_runtime;
    at = worker->current_at;
    count_tick(&key, task, now > at ? now - at : 0);
    return 0;
}
