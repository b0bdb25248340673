/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* wqt_walk reads all workqueues with the kernel's own counts. wqt_look quickly reads the counts of some known
 * workqueues, on the installed pool_workqueues only.
 *
 * The list of workqueues is not exported, and a sandboxed service cannot look up its address. The walk starts
 * at a rescuer, a worker that points to its workqueue, and follows the circular list. One link of the list is
 * its head. Each task that the iterator visits continues the walk by as many workqueues as fit into the
 * iterator's buffer. If that is full, the kernel drops what the visit wrote and visits the task again
 * (bpf_seq_read()): then the walk returns to where that visit began.
 *
 * wqt_look walks the whole list in one visit of one task, and writes nothing to the buffer. */
#include "bpf_shared.h"
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

#define STRETCH (30000 / sizeof(struct wq_record)) /* the iterator's buffer has 32 KiB */
#define MOST_POOLS 65536
#define MOST_WORKQUEUES 65536

__u64 first, next;    /* where the walk began, and where it continues */
__u32 seen;           /* links visited */
__u32 finished, torn; /* the walk is complete; the list changed during it */
__u32 unbound_only;   /* count only items and CPU time, and only of possible targets; list the others */
__u32 on_some_cpus;   /* count only pools of counted_cpus; unbound workqueues have none */
__u64 counted_cpus[WQ_MOST_CPUS / 64];
__u32 for_health; /* see WorkqueueWalk::health() */

/* Used by wqt_look. */
__u64 anchor;             /* where the walk begins */
__u64 asked[WQ_TARGETS];  /* workqueue_structs; 0: none */
__s32 asked_default = -1; /* the index of all others that follow the default scope; negative: none */
struct wq_edge edges[WQ_TARGETS];
__u64 looked_at, jiffies_then; /* ns, and jiffies */
__u32 looked;                  /* 1: the walk is complete */
__u64 looks;                   /* number of this look */
/* By a pool's ID: the last look that met the pool (upper 48 bits), and for which targets (lower 16). So a
 * pool behind many pool_workqueues counts once, and nothing has to be cleared. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* see WorkqueueWalk::load() */
    __type(key, __u32);
    __type(value, __u64);
} marks SEC(".maps");

static __always_inline struct workqueue_struct* of_link(struct list_head* link) {
    return CAST(struct workqueue_struct,
                (__u64)link - bpf_core_field_offset(((struct workqueue_struct*)0)->list));
}
static __always_inline struct pool_workqueue* of_pool_link(struct list_head* link) {
    return CAST(struct pool_workqueue,
                (__u64)link - bpf_core_field_offset(((struct pool_workqueue*)0)->pwqs_node));
}

struct sum {
    __u64 pwq;
    struct wq_record record;
};

#define ADD_STAT(sum, pwq, STAT)                                                                           \
    ({                                                                                                     \
        __u64 value = 0;                                                                                   \
        bpf_probe_read_kernel(                                                                             \
            &value, sizeof(value),                                                                         \
            (void*)&pwq->stats[0] + sizeof(value) * bpf_core_enum_value(enum pool_workqueue_stats, STAT)); \
        sum += value;                                                                                      \
    })

#define TRIES 64

/* Whether the pool_workqueue at *ADDRESS is installed. pool->lock is not held here, so a look counts only if
 * nothing changed meanwhile; and for a moment it can say the opposite (own_references()). So two in a row
 * must say "installed"; else the last that counts decides. A global function, so that the verifier looks at
 * it only once. */
__attribute__((noinline)) int is_in_place(const __u64* address) {
    const struct pool_workqueue* pwq;
    int installed = 1, sure = 0;

    if (!address) return 0; /* for the verifier */
    pwq = CAST(struct pool_workqueue, *address);
    for (int i = 0; i < TRIES && sure < 2; i++) {
        int before = pwq->refcnt, own;

        if (!before) return 0;
        barrier();
        own = own_references(pwq);
        barrier();
        if (pwq->refcnt != before) continue;
        installed = own > 0;
        sure = installed ? sure + 1 : 0;
    }
    return installed;
}

static __always_inline void count_in_flight(struct wq_record* record, const struct pool_workqueue* pwq) {
#pragma unroll
    for (int i = 0; i < 16; i++) record->in_flight += pwq->nr_in_flight[i];
}

static __always_inline void count_pool(struct wq_record* record, const struct pool_workqueue* pwq) {
    /* Read `completed` first, so that it does not exceed `started`. */
    ADD_STAT(record->completed, pwq, PWQ_STAT_COMPLETED);
    ADD_STAT(record->started, pwq, PWQ_STAT_STARTED);
    ADD_STAT(record->cpu_time, pwq, PWQ_STAT_CPU_TIME);
    if (unbound_only) return; /* runs every 5 s, on large machines with hundreds of pools per workqueue */
    ADD_STAT(record->cpu_intensive, pwq, PWQ_STAT_CPU_INTENSIVE);
    ADD_STAT(record->cm_wakeup, pwq, PWQ_STAT_CM_WAKEUP);
    ADD_STAT(record->repatriated, pwq, PWQ_STAT_REPATRIATED);
    ADD_STAT(record->mayday, pwq, PWQ_STAT_MAYDAY);
    ADD_STAT(record->rescued, pwq, PWQ_STAT_RESCUED);
    count_in_flight(record, pwq);
}

/* The hash is of the installed ones, so that it changes when the counts restart. */
static __always_inline void count_health(struct wq_record* record, const struct pool_workqueue* pwq) {
    __u64 address = (__u64)pwq;

    if (record->managed) {
        ADD_STAT(record->cpu_intensive, pwq, PWQ_STAT_CPU_INTENSIVE);
        return;
    }
    count_in_flight(record, pwq);
    ADD_STAT(record->all_completed, pwq, PWQ_STAT_COMPLETED);
    if (!is_in_place(&address)) return;
    record->pools += (number_of(pwq, counted_cpus) >> 6) * 0x9e3779b97f4a7c15ull;
    ADD_STAT(record->completed, pwq, PWQ_STAT_COMPLETED);
    ADD_STAT(record->started, pwq, PWQ_STAT_STARTED);
    ADD_STAT(record->repatriated, pwq, PWQ_STAT_REPATRIATED);
    ADD_STAT(record->mayday, pwq, PWQ_STAT_MAYDAY);
    ADD_STAT(record->rescued, pwq, PWQ_STAT_RESCUED);
}

static long add_pool(__u32 i, struct sum* sum) {
    struct pool_workqueue* pwq = CAST(struct pool_workqueue, sum->pwq);
    struct wq_record* record = &sum->record;
    __u64 link = 0; /* read as a number, because the verifier forbids arithmetic with pointers */

    if ((__u64)pwq->wq != record->address) return 1; /* the end: the list's head is not a pool_workqueue */
    if (for_health) {
        count_health(record, pwq);
    } else {
        if (!on_some_cpus || has_cpu(counted_cpus, pwq->pool->cpu)) count_pool(record, pwq);
        bpf_probe_read_kernel(&link, sizeof(link), &pwq->pwqs_node.next);
        record->pools += (link >> 6) * 0x9e3779b97f4a7c15ull;
    }
    sum->pwq = (__u64)of_pool_link(pwq->pwqs_node.next);
    return 0;
}

#define HAS_FLAG(wq, flag) (((wq)->flags & VALUE_OF(wq_flags, flag)) != 0)

struct visit {
    struct seq_file* seq;
    bool full;
};

static long visit(__u32 i, struct visit* visit) {
    struct workqueue_struct* wq = CAST(struct workqueue_struct, next);
    struct sum sum = {.pwq = (__u64)of_pool_link(wq->pwqs.next), .record = {.address = next}};
    /* Each workqueue has a pool_workqueue that points back to it. The list's head has none. */
    if ((__u64)CAST(struct pool_workqueue, sum.pwq)->wq == next) {
        bool unbound = HAS_FLAG(wq, WQ_UNBOUND);

        sum.record.follows_default = follows_default(wq);
        sum.record.in_sysfs = bpf_core_field_exists(wq->wq_dev) && wq->wq_dev;
        bool is_target = sum.record.in_sysfs || sum.record.follows_default;
        sum.record.unbound = unbound;
        sum.record.mem_reclaim = HAS_FLAG(wq, WQ_MEM_RECLAIM);
        sum.record.bh = HAS_FLAG(wq, WQ_BH);
        sum.record.managed = !sum.record.unbound && !sum.record.bh && !HAS_FLAG(wq, WQ_CPU_INTENSIVE);
        bool counted = unbound ? !on_some_cpus && (is_target || !unbound_only) : !unbound_only;
        if (for_health) counted = unbound ? sum.record.in_sysfs : sum.record.managed;
        if (counted) bpf_loop(MOST_POOLS, add_pool, &sum, 0);
        bpf_probe_read_kernel_str(sum.record.name, sizeof(sum.record.name), wq->name);
        if (!for_health || (unbound ? sum.record.in_sysfs : sum.record.cpu_intensive > 0))
            visit->full = bpf_seq_write(visit->seq, &sum.record, sizeof(sum.record)) != 0;
        if (visit->full) return 1;
    } else if (next == first) {
        torn = 1;
    }
    next = (__u64)of_link(wq->list.next);
    finished = next == first;
    if (++seen > MOST_WORKQUEUES) torn = 1;
    return finished || torn;
}

SEC("iter/task")
int wqt_walk(struct bpf_iter__task* ctx) {
    struct visit this = {.seq = ctx->meta->seq};
    struct task_struct* task = ctx->task;
    __u64 from;
    __u32 seen_before = seen;

    if (!task || finished || torn) return 0;
    if (!first) {
        if (!(task->flags & PF_WQ_WORKER)) return 0;
        first = (__u64)CAST(struct worker, CAST(struct kthread, task->worker_private)->data)->rescue_wq;
        if (!first) return 0;
        next = first;
    }
    from = next;
    bpf_loop(STRETCH, visit, &this, 0);
    if (this.full) {
        next = from;
        seen = seen_before;
        finished = torn = 0;
    }
    return 0;
}

struct look {
    __u64 wq;
    __u64 pwq;
    __u64 spare; /* of the workqueue: its dfl_pwq, which serves only CPUs that were all offline */
    __u32 t;
    __u32 round;
};

static __always_inline void count_workers(struct wq_edge* edge, const struct worker_pool* pool, __u32 t) {
    __u32 id = pool->id;
    __u64 ours = looks << WQ_TARGETS, *mark = bpf_map_lookup_elem(&marks, &id);

    if (!mark) {
        edge->uncounted = 1;
        return;
    }
    if (*mark >> WQ_TARGETS == looks) ours = *mark;
    if (ours >> t & 1) return;
    *mark = ours | 1ull << t;
    edge->worker_pools++;
    edge->workers += pool->nr_workers;
}

static long look_at_pool(__u32 i, struct look* look) {
    struct pool_workqueue* pwq = CAST(struct pool_workqueue, look->pwq);
    struct wq_edge* edge = &edges[look->t % WQ_TARGETS];

    if ((__u64)pwq->wq != look->wq) return 1;
    if (is_in_place(&look->pwq)) {
        ADD_STAT(edge->completed, pwq, PWQ_STAT_COMPLETED);
        ADD_STAT(edge->started, pwq, PWQ_STAT_STARTED);
        ADD_STAT(edge->cpu_time, pwq, PWQ_STAT_CPU_TIME);
        edge->pools += (number_of(pwq, edges) >> 6) * 0x9e3779b97f4a7c15ull;
        if (look->pwq != look->spare) count_workers(edge, pwq->pool, look->t % WQ_TARGETS);
    }
    look->pwq = (__u64)of_pool_link(pwq->pwqs_node.next);
    return 0;
}

static __always_inline int asked_for(const struct workqueue_struct* wq) {
    for (int i = 0; i < WQ_TARGETS; i++)
        if ((__u64)wq == asked[i]) return i;
    return asked_default >= 0 && follows_default(wq) ? asked_default : -1;
}

static long look_at(__u32 i, struct look* look) {
    struct workqueue_struct* wq = CAST(struct workqueue_struct, look->wq);
    int t;

    look->pwq = (__u64)of_pool_link(wq->pwqs.next);
    /* Otherwise this is the list's head. */
    if ((__u64)CAST(struct pool_workqueue, look->pwq)->wq == look->wq && (t = asked_for(wq)) >= 0) {
        look->t = t;
        look->spare = (__u64)wq->dfl_pwq;
        bpf_loop(MOST_POOLS, look_at_pool, look, 0);
    }
    look->wq = (__u64)of_link(wq->list.next);
    look->round = look->wq == anchor;
    return look->round;
}

SEC("iter/task")
int wqt_look(struct bpf_iter__task* ctx) {
    struct look look = {.wq = anchor};

    if (!ctx->task) return 0;
    __builtin_memset(edges, 0, sizeof(edges));
    looks++;
    looked_at = bpf_ktime_get_ns();
    jiffies_then = bpf_jiffies64();
    bpf_loop(MOST_WORKQUEUES, look_at, &look, 0);
    looked = look.round;
    return 0;
}
