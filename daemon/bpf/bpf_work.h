/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* What the programs that follow work items have in common. */
#pragma once

#include "kernel_types.h"

/* Set before loading: whether bpf_preempt_disable() is there. */
const volatile __u32 preemptible;

/* From 7.0 on a tracepoint can be preempted; the kernel then skips a program for all who come by on that CPU
 * until the one that was interrupted goes on. Such items show as unfinished, or lost. The kernels that have
 * it so also have the means to prevent it; what remains are a few instructions at either end. */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;
static __always_inline void hold_cpu(void) {
    if (preemptible) bpf_preempt_disable();
}
static __always_inline void release_cpu(void) {
    if (preemptible) bpf_preempt_enable();
}

/* The worker that the CURRENT task is. (Works in soft interrupts have none.) */
static __always_inline struct worker* worker_of(__u64 current) {
    struct task_struct* task = CAST(struct task_struct, current);

    if (!(task->flags & PF_WQ_WORKER)) return NULL;
    return CAST(struct worker, CAST(struct kthread, task->worker_private)->data);
}

static __always_inline __u64 wq_hash(__u64 number) {
    return (number >> 3) * 0x9e3779b97f4a7c15ull;
}
