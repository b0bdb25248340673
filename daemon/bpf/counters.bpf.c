/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Times work items of up to WQ_TARGETS targets, in the kernel.
 *
 * An item of a target passes five places:
 *   __queue_work           entered with interrupts off. The item is counted. One of N items is selected for
 *                          timing: the time is stored for this CPU
 *   workqueue_queue_work   pool->lock is held. A selected item becomes a record {work, window, time}
 *   __queue_work           returns, with the lock free again; seen only if `enqueue` is counted
 *   workqueue_execute_start  the record moves from `pending` (by work) to `running` (by worker), because the
 *                          work may be queued again or freed while it runs
 *   workqueue_execute_end  the times are added to the window in which the item was queued
 *
 * THE OBSERVER MUST NOT FAVOUR AN ARM. Code that runs under pool->lock delays all who wait for the lock, and
 * a coarser scope has more of them. So items are selected before the lock is taken; under it, an item that is
 * not timed costs one comparison. If the kernel refuses the first place (entry_seen is 0), all of this
 * happens at the second one.
 *
 * Both tables are sets of four entries, without a lock. If a set is full, the item is lost. A record of a
 * window that has ended is overwritten when its entry is needed.
 *
 * The kernel clears PENDING before it fires execute_start, so the same work may be queued again in between,
 * also after it was cancelled. An item drops the earlier record of its work, even if it is not timed itself:
 * its start would be taken for that of the earlier item, which is lost.
 *
 * A target has one window at a time to which items may still add. wqt_settle ends it. Items that are still
 * open add their age, so that starved work does not look fast; the kernel is asked whether they really are.
 */
#define PENDING_BITS 14
#define PENDING_MORE
#define KEY_SHIFT 7
#define TAG_MASK 1023
#include "bpf_shared.h"
#include "bpf_work.h"

char LICENSE[] SEC("license") = "GPL";

#define RUNNING_BITS 12

/* Set before loading. */
const volatile __u32 entry_seen; /* whether wqt_enter is loaded */
const volatile __u32 exit_seen;  /* whether wqt_leave is loaded; then wqt_enter is too */
const volatile __u32 tails;      /* whether histograms are kept */

/* Written only while no window is open. */
__u64 targets[WQ_TARGETS]; /* workqueue_structs; 0: none */
__u32 nr_targets;          /* the highest index in use, plus 1 */
__s32 default_target = -1; /* index of all others that follow the default scope; negative: none */

/* One per target. A tag is the number of a window (1 to 63) << 4 | the target's index. */
struct {
    __u64 since; /* when it began */
    __u32 live;  /* tag of the window to which items may still add; 0: none */
    __u32 open;  /* the same while newly queued items belong to that window, else 0 */
    __u32 n;     /* one of N items is timed; not 0 */
    __u32 padding;
} windows[WQ_TARGETS];

struct wq_sums sums[WQ_TARGETS][WQ_STRIPES] CACHE_LINE;

/* `owner` is the worker's task, + 1 while a timed item runs on it. */
struct running {
    __u64 owner;
    key_t key;
    __u64 queued;
    __u64 started;
};
static struct running running[1 << RUNNING_BITS][WAYS] CACHE_LINE;

PER_CPU(cpus, struct wq_cpu)

ARRAY(histograms, WQ_TARGETS* WQ_STRIPES, struct wq_histogram);
ARRAY(enqueued, WQ_TARGETS* WQ_STRIPES, struct wq_enqueued);

/* The index of the target that WQ belongs to; negative: none. */
static __always_inline int target_of(const struct workqueue_struct* wq) {
#pragma unroll
    for (int i = 0; i < WQ_TARGETS; i += 4) {
        if (nr_targets <= i) continue;
        if ((__u64)wq == targets[i]) return i;
        if ((__u64)wq == targets[i + 1]) return i + 1;
        if ((__u64)wq == targets[i + 2]) return i + 2;
        if ((__u64)wq == targets[i + 3]) return i + 3;
    }
    return default_target >= 0 && follows_default(wq) ? default_target : -1;
}

/* Whether the CURRENT task runs an item of TARGET. */
static __always_inline bool runs_for(__u64 current, int target) {
    struct worker* worker = worker_of(current);
    struct pool_workqueue* pwq;

    if (!worker) return false;
    pwq = worker->current_pwq;
    return pwq && target_of(pwq->wq) == target;
}

static __always_inline __u32 target_of_tag(__u32 tag) {
    return tag & (WQ_TARGETS - 1);
}

/* Whether items may still add to the window of the record. */
static __always_inline bool is_live(key_t key) {
    __u32 tag = key & TAG_MASK;
    return tag && windows[target_of_tag(tag)].live == tag;
}

static __always_inline struct wq_sums* sums_of(__u32 tag) {
    return &sums[target_of_tag(tag)][bpf_get_smp_processor_id() % WQ_STRIPES];
}

static __always_inline void put(__u64 number, __u32 tag, __u64 queued) {
    struct pending* set = pending_set(number);

#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        key_t key = set[i].key;
        if (is_live(key)) continue;
        if (__sync_val_compare_and_swap(&set[i].key, key, key_of(number, tag)) != key) continue;
        set[i].queued = queued; /* the worker reads it after it took pool->lock, which is held here */
        return;
    }
}

/* Called when an item of target T is queued on this CPU. Returns the tag of its window if it is to be timed,
 * else 0. Of items that come in batches of a constant size, every N-th could always be the same of a batch,
 * so the distance is random: N in the mean. */
static __always_inline __u32 choose(struct wq_cpu* here, __u32 t, const struct work_struct* work) {
    __u32 tag = windows[t].open, n = windows[t].n, left;
    struct pending ignored;

    if (windows[t].live) take(number_of(work, pending), &ignored);
    if (!tag) return 0;
    here->targets[t].queued++;
    left = here->targets[t].left;
    if (left && left < 2 * n - 1) { /* 2 * n - 1 or more is left from a larger N */
        here->targets[t].left = left - 1;
        return 0;
    }
    here->targets[t].left = bpf_get_prandom_u32() % (2 * n - 1);
    return tag;
}

SEC("fentry/__queue_work")
int BPF_PROG(wqt_enter, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    int t = target_of(wq);
    struct wq_cpu* here;

    if (t < 0 || !(here = cpus_here())) return 0;
    here->work = 0; /* a noted work that was not queued may have had this address */
    here->tag = choose(here, t % WQ_TARGETS, work);
    if (!here->tag) return 0;
    here->work = (__u64)work;
    here->time = bpf_ktime_get_ns();
    return 0;
}

/* Whether WORK is the work that was noted on this CPU. Clears the note. */
static __always_inline bool is_noted(struct wq_cpu* here, const struct work_struct* work) {
    if (here->work != (__u64)work) return false;
    here->work = 0;
    return true;
}

/* The same if the entry of __queue_work() is not seen: selects the item here. */
static __always_inline bool note(struct wq_cpu* here, const struct pool_workqueue* pwq,
                                 const struct work_struct* work) {
    int t = target_of(pwq->wq);

    if (t < 0) return false;
    here->tag = choose(here, t % WQ_TARGETS, work);
    here->time = bpf_ktime_get_ns();
    return here->tag;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(wqt_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* work) {
    struct wq_cpu* here = cpus_here();
    struct wq_sums* to;
    __u64 now;

    if (!here || !(entry_seen ? is_noted(here, work) : note(here, pwq, work))) return 0;
    now = bpf_ktime_get_ns();
    to = sums_of(here->tag);
    __sync_fetch_and_add(&to->timed, 1);
    if (entry_seen) __sync_fetch_and_add(&to->lock, now - here->time);
    /* nr_in_flight does not yet include the item itself. */
    if (own_references(pwq) <= 0) __sync_fetch_and_add(&to->stuck, 1);
    put(number_of(work, pending), here->tag, here->time);
    if (exit_seen) {
        here->leaving = (__u64)work;
        here->time += bpf_ktime_get_ns() - now; /* what was spent here is not the producer's */
    }
    return 0;
}

/* The key of this CPU's stripe for the window TAG, in the arrays. */
static __always_inline __u32 stripe_of(__u32 tag) {
    return target_of_tag(tag) * WQ_STRIPES + bpf_get_smp_processor_id() % WQ_STRIPES;
}

SEC("fexit/__queue_work")
int BPF_PROG(wqt_leave, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    struct wq_cpu* here = cpus_here();
    struct wq_enqueued* to;
    __u32 key, bucket;
    __u64 ns;

    if (!here || here->leaving != (__u64)work) return 0;
    here->leaving = 0;
    ns = bpf_ktime_get_ns() - here->time;
    key = stripe_of(here->tag);
    bucket = wq_bucket_by(ns, WQ_TIME_BITS);
    if (!is_live(here->tag) || bucket >= WQ_TIME_BUCKETS) return 0;
    if (!(to = bpf_map_lookup_elem(&enqueued, &key))) return 0;
    __sync_fetch_and_add(&to->ns, ns);
    __sync_fetch_and_add(&to->items[bucket], 1);
    return 0;
}

/* The entry of the current worker: the one that it had before, else an idle one; NULL if the set is full. */
static __always_inline struct running* occupy(struct running* set, __u64 task) {
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        __u64 owner = set[i].owner;
        if ((owner & ~1ull) != task) continue;
        /* If the worker is still marked busy, its execute_end was missed. */
        if (owner & 1 || __sync_val_compare_and_swap(&set[i].owner, owner, task | 1) == owner) return &set[i];
    }
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        __u64 owner = set[i].owner;
        if (!(owner & 1) && __sync_val_compare_and_swap(&set[i].owner, owner, task | 1) == owner)
            return &set[i];
    }
    return NULL;
}

static __always_inline struct running* running_set(__u64 task) {
    return running[wq_hash(task) >> (64 - RUNNING_BITS)];
}

static __always_inline void start(const struct work_struct* work) {
    struct pending was = {};
    key_t key = take(number_of(work, pending), &was);
    struct running* mine;
    __u64 task;

    if (!is_live(key)) return;
    task = bpf_get_current_task();
    if (!runs_for(task, target_of_tag(key))) return; /* of a cancelled item; its memory is another work now */
    mine = occupy(running_set(task), task);
    if (!mine) return;
    mine->key = key;
    mine->queued = was.queued;
    mine->started = bpf_ktime_get_ns();
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(wqt_start, struct work_struct* work) {
    hold_cpu();
    start(work);
    release_cpu();
    return 0;
}

/* One more item of the window TAG that has waited for NS. */
static __always_inline void add_wait(__u32 tag, __u64 ns) {
    __u32 key = stripe_of(tag);
    struct wq_histogram* to;
    __u32 bucket;

    if (!tails || !(to = bpf_map_lookup_elem(&histograms, &key))) return;
    bucket = wq_bucket(ns);
    if (bucket < WQ_BUCKETS) __sync_fetch_and_add(&to->waited[bucket], 1);
}

/* Adds the times of an item that started, up to END. Atomic, as CPUs share the sums. */
static __always_inline void add(const struct running* item, __u64 end, bool ended) {
    __u32 tag = item->key & TAG_MASK;
    struct wq_sums* to = sums_of(tag);

    /* Window numbers are reused. */
    if (!is_live(item->key) || item->queued < windows[target_of_tag(tag)].since) return;
    __sync_fetch_and_add(&to->latency, end - item->queued);
    __sync_fetch_and_add(&to->exec, end - item->started);
    __sync_fetch_and_add(ended ? &to->ended : &to->running, 1);
    add_wait(tag, item->started - item->queued);
}

static __always_inline void end(const struct work_struct* work) {
    __u64 task = bpf_get_current_task();
    struct running* set = running_set(task);

#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        if (set[i].owner != (task | 1)) continue;
        /* Another work: it ran in a softirq that interrupted the worker. */
        if (!same_work(set[i].key, key_of(number_of(work, pending), 0))) return;
        add(&set[i], bpf_ktime_get_ns(), true);
        set[i].owner = task;
        return;
    }
}

SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(wqt_end, struct work_struct* work) {
    hold_cpu();
    end(work);
    release_cpu();
    return 0;
}

/* The target whose window wqt_settle ends. */
__u32 settling;

struct settle {
    __u64 tag;
    __u64 now;
    __u64 table; /* the address of `pending` */
};

static __always_inline __u64 number_of_key(key_t key) {
    return (__s64)(key & ~(key_t)TAG_MASK) >> 7;
}

/* Whether the work of a record waits on a pool_workqueue. It may instead wait for a timer, or not wait at
 * all: a cancelled work leaves its record, and a start may be missed. */
static __always_inline bool is_queued(key_t key, __u64 table) {
    __u64 data = CAST(struct work_struct, number_of_key(key) + table)->data.counter;
    return data & 1 && data >> VALUE_OF(work_bits, WORK_STRUCT_PWQ_BIT) & 1;
}

static __always_inline void settle_record(struct pending* record, const struct settle* settle) {
    key_t key = record->key;
    __u64 queued = record->queued;
    struct wq_sums* to = sums_of(settle->tag);

    if ((key & TAG_MASK) != settle->tag) return;
    if (__sync_val_compare_and_swap(&record->key, key, 0) != key) return; /* it is starting */
    if (!is_queued(key, settle->table)) return;
    __sync_fetch_and_add(&to->latency, settle->now - queued);
    __sync_fetch_and_add(&to->pending, 1);
    add_wait(settle->tag, settle->now - queued);
}

static long settle_pending(__u32 i, const struct settle* settle) {
    if (i >= 1 << PENDING_BITS) return 1;
    for (int way = 0; way < WAYS; way++) settle_record(&pending[i][way], settle);
    return 0;
}

/* Whether the worker still runs the item with this KEY. */
static __always_inline bool is_at(__u64 task, key_t key) {
    struct worker* worker = worker_of(task);
    return worker && same_work(key_of(number_of(worker->current_work, pending), 0), key);
}

static long settle_running(__u32 i, const struct settle* settle) {
    if (i >= 1 << RUNNING_BITS) return 1;
    for (int way = 0; way < WAYS; way++) {
        struct running* item = &running[i][way];
        if (!(item->owner & 1) || (item->key & TAG_MASK) != settle->tag) continue;
        if (is_at(item->owner & ~1ull, item->key) && item->started <= settle->now)
            add(item, settle->now, false);
    }
    return 0;
}

/* Adds the ages of the open items of a target's window. After that, nothing adds to the window. */
SEC("syscall")
int wqt_settle(void* ctx) {
    __u32 t = settling % WQ_TARGETS;
    struct settle settle = {.tag = windows[t].live, .now = bpf_ktime_get_ns()};

    if (!settle.tag) return 0;
    settle.table = bpf_get_current_task() - number_of(bpf_get_current_task_btf(), pending);
    bpf_loop(1 << RUNNING_BITS, settle_running, &settle, 0);
    bpf_loop(1 << PENDING_BITS, settle_pending, &settle, 0);
    windows[t].live = 0;
    return 0;
}
