/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Shared code of the programs that follow work items. */
#pragma once

#include "kernel_types.h"

/* Set before loading: whether bpf_preempt_disable() exists. */
const volatile __u32 preemptible;

/* Since 7.0 a program at a tracepoint can be preempted. Until it continues, the kernel skips the program for
 * all other tasks on that CPU. The items that it misses show as unfinished or lost. The same kernels have
 * bpf_preempt_disable(), which prevents this except for a few instructions at either end. */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;
static __always_inline void hold_cpu(void) {
    if (preemptible) bpf_preempt_disable();
}
static __always_inline void release_cpu(void) {
    if (preemptible) bpf_preempt_enable();
}

/* The worker of the CURRENT task; NULL if it is not a kworker. (Work in softirqs has no worker.) */
static __always_inline struct worker* worker_of(__u64 current) {
    struct task_struct* task = CAST(struct task_struct, current);

    if (!(task->flags & PF_WQ_WORKER)) return NULL;
    return CAST(struct worker, CAST(struct kthread, task->worker_private)->data);
}

static __always_inline __u64 wq_hash(__u64 number) {
    return (number >> 3) * 0x9e3779b97f4a7c15ull;
}
