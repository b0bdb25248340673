/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Data that profile.bpf.c shares with user space. C, because both sides include it. */
#pragma once

#include <linux/types.h>

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

/* Events of work on isolated CPUs: an item started there, or was queued there by a timer or a task. */
enum wq_isolated_event { WQ_ISOLATED_STARTED, WQ_ISOLATED_BY_TIMER, WQ_ISOLATED_BY_TASK };
struct wq_isolated_key {
    __u64 workqueue; /* 0: it started in a softirq, which has no worker */
    __u64 function;
    __u32 event;   /* enum wq_isolated_event */
    __u32 cpu;     /* where it was queued; 0 if it started */
    char comm[16]; /* of the task that ran there when it was queued; empty otherwise */
};
struct wq_isolated {
    __u64 items;
    char function[96];
};
