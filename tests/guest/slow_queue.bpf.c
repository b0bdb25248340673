/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Makes queue_work() take a known time for one workqueue, and times it with a clock of its own: what the
 * counters and `top` say of `enqueue` is compared with this. The time passes while pool->lock is held, so
 * others who queue onto the same pool wait for it. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct workqueue_struct {
    char name[24];
};
#pragma clang attribute pop
struct work_struct;

/* Set before loading. */
char name[24]; /* of the workqueue, cut off as the kernel does */

#define MOST 16384
__u64 items;
__u64 ns[MOST];

/* Of 100 items, 60 wait for 500 us, 32 for 2 ms, five for 4 ms and three for 8 ms. So each is a percentile.
 */
static __always_inline __u64 delay_of(__u64 number) {
    __u64 place = number * 37 % 100;
    return place < 60 ? 500000 : place < 92 ? 2000000 : place < 97 ? 4000000 : 8000000;
}

struct inside {
    __u64 work;
    __u64 since;
    __u64 number;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct inside);
} inside SEC(".maps");

static __always_inline struct inside* here(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&inside, &zero);
}

SEC("fentry/__queue_work")
int BPF_PROG(slow_enter, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    struct inside* mine = here();
    char its[24] = {};

    if (!mine) return 0;
    mine->work = 0;
    bpf_probe_read_kernel_str(its, sizeof(its), wq->name);
    for (int i = 0; i < 24; i++) {
        if (its[i] != name[i]) return 0;
        if (!its[i]) break;
    }
    mine->work = (__u64)work;
    mine->number = __sync_fetch_and_add(&items, 1);
    mine->since = bpf_ktime_get_ns();
    return 0;
}

static long spin(__u32 i, __u64* until) {
    return bpf_ktime_get_ns() >= *until;
}

/* In __queue_work(), under pool->lock: the item need not wait for max_active. */
SEC("tp_btf/workqueue_activate_work")
int BPF_PROG(slow_activate, struct work_struct* work) {
    struct inside* mine = here();
    __u64 until;

    if (!mine || mine->work != (__u64)work) return 0;
    until = bpf_ktime_get_ns() + delay_of(mine->number);
    bpf_loop(1 << 22, spin, &until, 0);
    return 0;
}

SEC("fexit/__queue_work")
int BPF_PROG(slow_leave, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    __u64 now = bpf_ktime_get_ns(), number;
    struct inside* mine = here();

    if (!mine || mine->work != (__u64)work) return 0;
    mine->work = 0;
    number = mine->number;
    if (number < MOST) ns[number] = now - mine->since;
    return 0;
}
