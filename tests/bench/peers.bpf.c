/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* The programs that our counters are compared with. They work like bcc's wqlat: a hash table has the time of
 * queueing of each work, and a histogram with powers of two has the times until the start. The code is not
 * bcc's.
 *
 * - peer_wq_*: as in bcc, with classic tracepoints, and the workqueue's name stored with each time
 * - peer_bare_*: the minimum, attached like our own programs, without names
 * - peer_none_*: attached where our own programs are, and does nothing: the cost of a call
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#define WORKS 10240 /* bcc's default */
#define OCTAVES 64
#define NAME_SIZE 24

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct trace_event_raw_workqueue_queue_work {
    void* work;
    __u32 __data_loc_workqueue; /* offset of the name in the record */
};
struct trace_event_raw_workqueue_execute_start {
    void* work;
};
#pragma clang attribute pop
struct pool_workqueue;
struct workqueue_struct;
struct work_struct;

struct named {
    char name[NAME_SIZE];
    __u64 time;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, WORKS);
    __type(key, __u64);
    __type(value, struct named);
} named SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, WORKS);
    __type(key, __u64);
    __type(value, __u64);
} bare SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, OCTAVES);
    __type(key, __u32);
    __type(value, __u64);
} histogram SEC(".maps");

static __always_inline __u32 log2_of(__u64 value) {
    __u32 log2 = 0;
    for (__u32 step = 32; step; step >>= 1) {
        if (value >> (log2 + step)) log2 += step;
    }
    return log2;
}

static __always_inline void waited(__u64 since) {
    __u32 octave = log2_of((bpf_ktime_get_ns() - since) / 1000); /* wqlat shows us */
    __u64* count = bpf_map_lookup_elem(&histogram, &octave);
    if (count) __sync_fetch_and_add(count, 1);
}

SEC("tracepoint/workqueue/workqueue_queue_work")
int peer_wq_queue(struct trace_event_raw_workqueue_queue_work* record) {
    __u64 work = (__u64)record->work;
    struct named here = {};
    bpf_probe_read_kernel_str(here.name, sizeof(here.name),
                              (void*)record + (record->__data_loc_workqueue & 0xffff));
    here.time = bpf_ktime_get_ns();
    bpf_map_update_elem(&named, &work, &here, BPF_ANY);
    return 0;
}

SEC("tracepoint/workqueue/workqueue_execute_start")
int peer_wq_start(struct trace_event_raw_workqueue_execute_start* record) {
    __u64 work = (__u64)record->work;
    struct named* here = bpf_map_lookup_elem(&named, &work);
    if (!here) return 0;
    waited(here->time);
    bpf_map_delete_elem(&named, &work);
    return 0;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(peer_bare_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* item) {
    __u64 work = (__u64)item, time = bpf_ktime_get_ns();
    bpf_map_update_elem(&bare, &work, &time, BPF_ANY);
    return 0;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(peer_bare_start, struct work_struct* item) {
    __u64 work = (__u64)item;
    __u64* time = bpf_map_lookup_elem(&bare, &work);
    if (!time) return 0;
    waited(*time);
    bpf_map_delete_elem(&bare, &work);
    return 0;
}

SEC("fentry/__queue_work")
int BPF_PROG(peer_none_enter, int cpu, struct workqueue_struct* wq, struct work_struct* work) {
    return 0;
}
SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(peer_none_queue, int cpu, struct pool_workqueue* pwq, struct work_struct* work) {
    return 0;
}
SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(peer_none_start, struct work_struct* work) {
    return 0;
}
SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(peer_none_end, struct work_struct* work) {
    return 0;
}
