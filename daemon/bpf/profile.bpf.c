/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* A profile of kworkers, for `wq-tunectl diagnose`: which function of which workqueue each one runs, and who
 * disturbs isolated CPUs.
 *
 * wq_worker_tick          each scheduler tick that finds a kworker running is one sample of its function. The
 *                         kernel counts PWQ_STAT_CPU_TIME here too, so both agree. It costs nothing per work
 *                         item. A CPU without a tick (nohz_full) is not seen.
 * workqueue_execute_start on isolated CPUs: counts the item
 * workqueue_queue_work    for a pool of an isolated CPU: counts who queued it from where. The task that runs
 *                         on that CPU is not always the cause: an interrupt may have come. Timers of delayed
 *                         work are told apart, because delayed_work_timer_fn calls __queue_work directly. */
#include "bpf_shared.h"
#include "bpf_work.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before loading. */
const volatile __u64 isolated_cpus[WQ_MOST_CPUS / 64];

HASH(ran, 4096, struct wq_ran_key, struct wq_ran);
HASH(isolated, 1024, struct wq_isolated_key, struct wq_isolated);
__u64 lost_ticks, lost_items; /* no room for them; lost_items: only items that started */

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
int BPF_PROG(wqt_profile_tick, struct task_struct* task) {
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

static __always_inline void count_isolated(const struct wq_isolated_key* key) {
    struct wq_isolated* here = entry_of(&isolated, key, struct wq_isolated, );

    if (here)
        __sync_fetch_and_add(&here->items, 1);
    else if (key->event == WQ_ISOLATED_STARTED)
        __sync_fetch_and_add(&lost_items, 1);
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(wqt_profile_start, struct work_struct* work) {
    struct wq_isolated_key key = {.event = WQ_ISOLATED_STARTED};
    struct worker* worker;

    hold_cpu();
    if (has_cpu(isolated_cpus, bpf_get_smp_processor_id())) {
        worker = worker_of(bpf_get_current_task());
        /* If current_work is another work, WORK runs in a softirq that interrupted the worker. */
        if (worker && worker->current_work == work && worker->current_pwq)
            key.workqueue = (__u64)worker->current_pwq->wq;
        key.function = (__u64)work->func;
        count_isolated(&key);
    }
    release_cpu();
    return 0;
}

/* The timer that runs on this CPU. The work is queued with interrupts off, before another timer can run. */
PER_CPU(timer, __u64)

SEC("fentry/delayed_work_timer_fn")
int BPF_PROG(wqt_profile_timer, struct timer_list* timer) {
    __u64* here = timer_here();

    if (here) *here = (__u64)timer;
    return 0;
}

static __always_inline bool is_by_timer(const struct work_struct* work) {
    __u64* here = timer_here();

    if (!here || !*here) return false;
    if (*here - bpf_core_field_offset(((struct delayed_work*)0)->timer) != (__u64)work) return false;
    *here = 0;
    return true;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(wqt_profile_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* work) {
    struct wq_isolated_key key = {.event = WQ_ISOLATED_BY_TASK};
    struct task_struct* task;
    int pool_cpu = pwq->pool->cpu;

    if (pool_cpu < 0 || !has_cpu(isolated_cpus, pool_cpu)) return 0;
    key.workqueue = (__u64)pwq->wq;
    key.function = (__u64)work->func;
    key.cpu = bpf_get_smp_processor_id();
    if (is_by_timer(work)) {
        key.event = WQ_ISOLATED_BY_TIMER;
    } else {
        task = CAST(struct task_struct, bpf_get_current_task());
        bpf_probe_read_kernel(key.comm, sizeof(key.comm), task->comm);
    }
    count_isolated(&key);
    return 0;
}
