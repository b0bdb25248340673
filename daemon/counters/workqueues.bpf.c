/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* All workqueues there are, with what the kernel itself has counted of them.
 *
 * Their list is not exported, and a sandboxed service cannot look its address up. The way in is a rescuer, a
 * worker that names the workqueue it serves; from there the list goes round. One link of the ring is the
 * list's head, which is no workqueue. Each task that the iterator visits carries the walk on by a stretch
 * that fits into its buffer. */
#include "bpf_shared.h"
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

#define STRETCH 200 /* x sizeof(struct wq_record) is less than the 32 KiB of the iterator's buffer */
#define MOST_POOLS 65536
#define MOST_WORKQUEUES 65536

__u64 first, next;    /* where the walk began, and where it goes on */
__u32 seen;           /* links of the ring */
__u32 finished, torn; /* it came round; the ring changed under it */

static __always_inline struct workqueue_struct* of_link(struct list_head* link) {
    return CAST(struct workqueue_struct,
                (__u64)link - bpf_core_field_offset(((struct workqueue_struct*)0)->list));
}
static __always_inline struct pool_workqueue* of_pool_link(struct list_head* link) {
    return CAST(struct pool_workqueue,
                (__u64)link - bpf_core_field_offset(((struct pool_workqueue*)0)->pwqs_node));
}

struct sum {
    __u64 wq;
    __u64 pwq;
    __u64 started;
};

static long add_pool(__u32 i, struct sum* sum) {
    struct pool_workqueue* pwq = CAST(struct pool_workqueue, sum->pwq);
    __u64 started = 0;

    if ((__u64)pwq->wq != sum->wq) return 1; /* round: the ring's head is no pool_workqueue */
    bpf_probe_read_kernel(
        &started, sizeof(started),
        (void*)&pwq->stats[0] +
            sizeof(started) * bpf_core_enum_value(enum pool_workqueue_stats, PWQ_STAT_STARTED));
    sum->started += started;
    sum->pwq = (__u64)of_pool_link(pwq->pwqs_node.next);
    return 0;
}

static long visit(__u32 i, struct seq_file** seq) {
    struct workqueue_struct* wq = CAST(struct workqueue_struct, next);
    struct sum sum = {.wq = next, .pwq = (__u64)of_pool_link(wq->pwqs.next)};
    /* Each workqueue has a pool_workqueue that names it; what lies before the list's head has none. */
    if ((__u64)CAST(struct pool_workqueue, sum.pwq)->wq == next) {
        struct wq_record record = {.address = next, .follows_default = follows_default(wq)};
        bpf_loop(MOST_POOLS, add_pool, &sum, 0);
        record.started = sum.started;
        record.in_sysfs = bpf_core_field_exists(wq->wq_dev) && wq->wq_dev;
        bpf_probe_read_kernel_str(record.name, sizeof(record.name), wq->name);
        bpf_seq_write(*seq, &record, sizeof(record));
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
    struct task_struct* task = ctx->task;
    struct seq_file* seq = ctx->meta->seq;

    if (!task || finished || torn) return 0;
    if (!first) {
        if (!(task->flags & PF_WQ_WORKER)) return 0;
        first = (__u64)CAST(struct worker, CAST(struct kthread, task->worker_private)->data)->rescue_wq;
        if (!first) return 0;
        next = first;
    }
    bpf_loop(STRETCH, visit, &seq, 0);
    return 0;
}
