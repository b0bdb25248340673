/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Times each work item of the target, in the kernel.
 *
 * An item passes four places:
 *   __queue_work           the time is noted, on this CPU; interrupts are off until the next place
 *   workqueue_queue_work   pool->lock is held: the item becomes a record {work, time} of the present window
 *   workqueue_execute_start  the record goes from `pending` to `running`, from the work to the worker, since
 *                          the work may be queued again, or be freed, while it runs
 *   workqueue_execute_end  its times are added to the window that it was queued in
 *
 * Both tables are sets of four entries, so that an item costs a few loads and one compare-and-swap per place,
 * where a hash map would take a lock. A set that is full loses the item, and the loss is counted. A record of
 * a window that is no more gives way to whoever needs the room.
 *
 * The kernel clears PENDING before it fires execute_start, so the same work may be queued again in between:
 * the later record replaces the earlier, which counts as lost. So does that of an item that was cancelled.
 *
 * Where CPUs are watched, because they are isolated, all work that starts on them is counted too, of whatever
 * workqueue, by workqueue and function. Where none are, the kernel drops that part when it loads the program.
 */
#include "bpf_shared.h"
#include "bpf_work.h"

char LICENSE[] SEC("license") = "GPL";

#define WAYS 4
#define PENDING_BITS 14
#define RUNNING_BITS 12

/* Set before loading. */
const volatile __u64 target;     /* a workqueue_struct; 0: all that follow the default scope */
const volatile __u32 entry_seen; /* whether wqt_enter is there */

const volatile __u32 watching; /* whether there is a CPU to watch */
const volatile __u64 watched_cpus[WQ_MOST_CPUS / 64];

/* Set while running. A tag is the number of a window, 1 to 1023; now = tag << 1 | slot, 0 outside of one. */
__u32 now;
__u32 tags[2];

/* number << 7 | tag: the shift loses nothing, see number_of(). 0 is free. */
typedef __u64 key_t;
#define TAG_MASK 1023

struct pending {
    key_t key;
    __u64 queued;
};
static struct pending pending[1 << PENDING_BITS][WAYS] __attribute__((aligned(64)));

/* `owner` is the worker's task, + 1 while an item of the target runs on it. */
struct running {
    __u64 owner;
    key_t key;
    __u64 queued;
    __u64 started;
};
static struct running running[1 << RUNNING_BITS][WAYS] __attribute__((aligned(64)));

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct wq_slot);
} slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 512);
    __type(key, struct wq_watch_key);
    __type(value, struct wq_watched);
} watched SEC(".maps");
__u64 watched_lost; /* items for which it had no room */

static __always_inline bool is_target(const struct workqueue_struct* wq) {
    return target ? (__u64)wq == target : follows_default(wq);
}

/* Whether the item that the CURRENT task runs is the target's. */
static __always_inline bool runs_target(__u64 current) {
    struct worker* worker = worker_of(current);
    struct pool_workqueue* pwq;

    if (!worker) return false;
    pwq = worker->current_pwq;
    return pwq && is_target(pwq->wq);
}

/* Each pool_workqueue that is installed holds one reference to itself, and each item in flight one more; both
 * change under pool->lock only, and the item being queued is not among them yet. (The rescuer takes one for a
 * moment, when memory is short: an item is taken for one in place then.) */
static __always_inline bool is_installed(const struct pool_workqueue* pwq) {
    int references = pwq->refcnt;

#pragma unroll
    for (int i = 0; i < 16; i++) references -= pwq->nr_in_flight[i];
    return references > 0;
}

static __always_inline key_t key_of(__u64 number, __u32 tag) {
    return number << 7 | tag;
}

static __always_inline bool same_work(key_t a, key_t b) {
    return !((a ^ b) & ~(key_t)TAG_MASK);
}

/* The slot of the window that the record belongs to; -1 if that window is no more. */
static __always_inline int slot_of(key_t key) {
    __u32 tag = key & TAG_MASK;
    if (!tag) return -1;
    if (tag == tags[0]) return 0;
    return tag == tags[1] ? 1 : -1;
}

static __always_inline struct wq_slot* sums_of(__u32 slot) {
    return bpf_map_lookup_elem(&slots, &slot);
}

static __always_inline void lose(key_t key) {
    int slot = slot_of(key);
    struct wq_slot* sums = slot < 0 ? NULL : sums_of(slot);
    if (sums) __sync_fetch_and_add(&sums->lost, 1);
}

static __always_inline struct pending* pending_set(__u64 number) {
    return pending[wq_hash(number) >> (64 - PENDING_BITS)];
}

/* Takes the record of a work out of its set: its key and its time, or 0. */
static __always_inline key_t take(struct pending* set, __u64 number, __u64* queued) {
    key_t wanted = key_of(number, 0);

#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        key_t key = set[i].key;
        if (!same_work(key, wanted)) continue;
        *queued = set[i].queued;
        return __sync_val_compare_and_swap(&set[i].key, key, 0) == key ? key : 0;
    }
    return 0;
}

static __always_inline bool put(struct pending* set, key_t record, __u64 queued) {
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        key_t key = set[i].key;
        if (slot_of(key) >= 0) continue;
        if (__sync_val_compare_and_swap(&set[i].key, key, record) != key) continue;
        set[i].queued = queued; /* seen in time: the worker takes pool->lock, which is held here */
        return true;
    }
    return false;
}

SEC("fentry/__queue_work")
int BPF_PROG(wqt_enter, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    if (now && is_target(wq)) enter((__u64)work);
    return 0;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(wqt_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* work) {
    __u32 window = now;
    struct pending* set;
    struct wq_slot* sums;
    __u64 number, queued, ignored;
    key_t before;

    if (!is_target(pwq->wq)) return 0;
    number = number_of(work, pending);
    set = pending_set(number);
    before = take(set, number, &ignored);
    if (before) lose(before);
    if (!window) return 0;
    sums = sums_of(window & 1);
    if (!sums) return 0;

    queued = bpf_ktime_get_ns();
    if (entry_seen) {
        __u64 entered_at = leave((__u64)work);
        if (entered_at) {
            sums->lock += queued - entered_at;
            queued = entered_at;
        }
    }
    sums->queued++;
    sums->stuck += !is_installed(pwq);
    if (!put(set, key_of(number, window >> 1), queued)) __sync_fetch_and_add(&sums->lost, 1);
    return 0;
}

/* The entry of the current worker: the one it had before, else one that is idle. */
static __always_inline struct running* occupy(struct running* set, __u64 task) {
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        __u64 owner = set[i].owner;
        if ((owner & ~1ull) != task) continue;
        /* A worker that is busy still missed its execute_end. */
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

/* SPENT: ns that went by since the tracepoint was entered, for the watched CPUs' sake. They are not the
 * work's: an arm that has more of its work there must not look slower for it. */
static __always_inline void start(const struct work_struct* work, __u64 spent) {
    __u64 task = bpf_get_current_task();
    struct running* mine;
    __u64 number, queued = 0;
    key_t key;

    if (!runs_target(task)) return;
    number = number_of(work, pending);
    key = take(pending_set(number), number, &queued);
    if (slot_of(key) < 0) return;
    mine = occupy(running_set(task), task);
    if (!mine) {
        lose(key);
        return;
    }
    mine->key = key;
    mine->queued = queued + spent;
    mine->started = bpf_ktime_get_ns();
}

static __always_inline bool is_watched(__u32 cpu) {
    return cpu < WQ_MOST_CPUS && watched_cpus[cpu / 64] >> (cpu % 64) & 1;
}

/* The first of its kind also leaves the function's name: nobody but the kernel may look that up. */
static __always_inline void count_first(const struct wq_watch_key* key) {
    struct wq_watched first = {.items = 1};
    struct wq_watched* here;

    BPF_SNPRINTF(first.function, sizeof(first.function), "%ps", key->function);
    if (!bpf_map_update_elem(&watched, key, &first, BPF_NOEXIST)) return;
    here = bpf_map_lookup_elem(&watched, key); /* another CPU was first after all? */
    __sync_fetch_and_add(here ? &here->items : &watched_lost, 1);
}

static __always_inline void count_watched(const struct work_struct* work) {
    struct wq_watch_key key = {};
    struct wq_watched* here;
    struct worker* worker;

    key.function = (__u64)work->func;
    worker = worker_of(bpf_get_current_task());
    /* Another work is what the worker ran when the soft interrupt came. */
    if (worker && worker->current_work == work && worker->current_pwq) {
        struct workqueue_struct* wq = worker->current_pwq->wq;
        bpf_probe_read_kernel_str(key.workqueue, sizeof(key.workqueue), wq->name);
        key.per_cpu = !(wq->flags & bpf_core_enum_value(enum wq_flags, WQ_UNBOUND));
    }
    here = bpf_map_lookup_elem(&watched, &key);
    if (here)
        __sync_fetch_and_add(&here->items, 1);
    else
        count_first(&key);
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(wqt_start, struct work_struct* work) {
    __u64 spent = 0;

    hold_cpu();
    if (watching && is_watched(bpf_get_smp_processor_id())) {
        __u64 entered_at = bpf_ktime_get_ns();
        count_watched(work);
        spent = bpf_ktime_get_ns() - entered_at;
    }
    start(work, spent);
    release_cpu();
    return 0;
}

/* Atomic, as this may be preempted by an item that ends on the same CPU where hold_cpu() has no effect. */
static __always_inline void add(const struct running* item, __u64 end) {
    int slot = slot_of(item->key);
    struct wq_slot* sums = slot < 0 ? NULL : sums_of(slot);
    __u32 bucket;

    if (!sums) return;
    bucket = wq_bucket(item->started - item->queued);
    if (bucket >= WQ_BUCKETS) return;
    __sync_fetch_and_add(&sums->latency, end - item->queued);
    __sync_fetch_and_add(&sums->exec, end - item->started);
    __sync_fetch_and_add(&sums->waited[bucket], 1);
}

static __always_inline void end(const struct work_struct* work) {
    __u64 task = bpf_get_current_task();
    struct running* set;

    if (!runs_target(task)) return;
    set = running_set(task);
#pragma unroll
    for (int i = 0; i < WAYS; i++) {
        if (set[i].owner != (task | 1)) continue;
        /* Another work: one that ran in a soft interrupt, on top of the worker's own. */
        if (!same_work(set[i].key, key_of(number_of(work, pending), 0))) return;
        add(&set[i], bpf_ktime_get_ns());
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
