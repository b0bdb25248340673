/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Reads the state of kernel/workqueue.c in pieces: pools by ID, workqueues along their list. Each run is
 * one RCU read section. RCU keeps alive what the run reads, because the kernel frees pools,
 * pool_workqueues and workqueues after a grace period. Changes between two runs are detected where they
 * would give wrong results.
 *
 * wqt_pods reads the pods of each affinity scope, which the kernel makes at boot and never changes. It is
 * also loaded alone. */
#include <linux/errno.h>

#include "bpf_shared.h"
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

#define MOST_LEVELS 6     /* of the radix tree: 64^6 IDs */
#define IDS_PER_RUN 16384 /* most of them are in use, because the kernel allocates the lowest free ID */

/* Set before loading. */
const volatile __u32 nr_cpus;    /* highest possible CPU plus one */
const volatile __u32 mask_bytes; /* size of a CPU mask, a multiple of 8 */

/* Gets the address of the variable NAME, a string literal. Returns a negative errno: -EPERM if the
 * process may not see addresses (CAP_SYSLOG, kernel.kptr_restrict), -ENOENT if kallsyms has no such name. */
#define find_variable(name, address) bpf_kallsyms_lookup_name(name, sizeof(name), 0, address)

static __always_inline int read_mask(void* to, const void* mask) {
    return bpf_probe_read_kernel(to, mask_bytes, mask);
}

/* cpumask_var_t is a pointer with CONFIG_CPUMASK_OFFSTACK, else the mask itself. CO-RE only matches
 * fields of the same kind. */
#define MASK_IS_POINTER bpf_core_field_exists(((struct workqueue_attrs*)0)->cpumask)

/* Reads element INDEX of an array of cpumask_var_t. */
static __always_inline int read_mask_var(void* to, __u64 array, __u32 index) {
    __u64 mask = array + index * bpf_core_type_size(struct cpumask);
    if (MASK_IS_POINTER && bpf_probe_read_kernel(&mask, sizeof(mask), (void*)array + index * sizeof(mask)))
        return -1;
    return read_mask(to, (void*)mask);
}

/* The pods of scope S begin at S * nr_cpus. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct wq_pod));
} pods SEC(".maps");

__s32 nr_pods[WQ_SCOPES]; /* 0: this kernel does not have the scope */

struct pods_walk {
    __u64 type;
    __u32 scope;
    int error;
};

static long read_pod(__u32 i, struct pods_walk* walk) {
    struct wq_pod_type* type = CAST(struct wq_pod_type, walk->type);
    __u32 key = walk->scope * nr_cpus + i;
    struct wq_pod* pod = bpf_map_lookup_elem(&pods, &key);
    int node;

    if (!pod || bpf_probe_read_kernel(&node, sizeof(node), type->pod_node + i) ||
        read_mask_var(pod->mask, (__u64)type->pod_cpus, i)) {
        walk->error = -EFAULT;
        return 1;
    }
    pod->node = node;
    return 0;
}

static __always_inline int read_scope(__u64 types, __u32 scope, __u32 index) {
    struct pods_walk walk = {.type = types + index * bpf_core_type_size(struct wq_pod_type), .scope = scope};
    int nr = CAST(struct wq_pod_type, walk.type)->nr_pods;

    if (nr < 0 || nr > nr_cpus) return -ERANGE;
    nr_pods[scope] = nr;
    bpf_loop(nr, read_pod, &walk, 0);
    return walk.error;
}

#define READ_SCOPE(scope, name)                                         \
    if (!error && bpf_core_enum_value_exists(enum wq_affn_scope, name)) \
    error = read_scope(types, scope, bpf_core_enum_value(enum wq_affn_scope, name))

SEC("syscall")
int wqt_pods(void* ctx) {
    __u64 types;
    int error = find_variable("wq_pod_types", &types);

    READ_SCOPE(0, WQ_AFFN_CPU);
    READ_SCOPE(1, WQ_AFFN_SMT);
    READ_SCOPE(2, WQ_AFFN_CACHE_SHARD);
    READ_SCOPE(3, WQ_AFFN_CACHE);
    READ_SCOPE(4, WQ_AFFN_NUMA);
    READ_SCOPE(5, WQ_AFFN_SYSTEM);
    return error;
}

/* Set by wqt_find. A missing mask is not an error: 6.6 only has the first one. */
struct wq_mask unbound_mask, requested_mask, isolated_mask;
__u8 has_requested, has_isolated;
__s32 default_scope;
__u64 pool_idr, workqueues, per_cpu_offset;

/* Set by wqt_pools. Each run continues after the previous one until there are no more pools. */
struct wq_pool pools[WQ_POOLS];
__u32 nr_pools, next_id, last_id;

/* Set by wqt_workqueue. LINK is the next workqueue, or the list head at the end. */
struct wq_dumped dumped;
__u64 link;

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

#define IF_SCOPE(value, name, index)                              \
    if (bpf_core_enum_value_exists(enum wq_affn_scope, name) &&   \
        (value) == bpf_core_enum_value(enum wq_affn_scope, name)) \
    return index

static __always_inline __s32 scope_of(__u32 value) {
    IF_SCOPE(value, WQ_AFFN_DFL, WQ_SCOPE_DEFAULT);
    IF_SCOPE(value, WQ_AFFN_CPU, 0);
    IF_SCOPE(value, WQ_AFFN_SMT, 1);
    IF_SCOPE(value, WQ_AFFN_CACHE_SHARD, 2);
    IF_SCOPE(value, WQ_AFFN_CACHE, 3);
    IF_SCOPE(value, WQ_AFFN_NUMA, 4);
    IF_SCOPE(value, WQ_AFFN_SYSTEM, 5);
    return WQ_SCOPE_UNKNOWN;
}

SEC("syscall")
int wqt_find(void* ctx) {
    __u64 address;
    __u32 scope;
    int error;

    if ((error = find_variable("wq_affn_dfl", &address))) return error;
    if (bpf_probe_read_kernel(&scope, sizeof(scope), (void*)address)) return -EFAULT;
    default_scope = scope_of(scope);

    if ((error = find_variable("wq_unbound_cpumask", &address))) return error;
    if (read_mask_var(&unbound_mask, address, 0)) return -EFAULT;
    if (!find_variable("wq_requested_unbound_cpumask", &address))
        has_requested = !read_mask_var(&requested_mask, address, 0);
    if (!find_variable("wq_isolated_cpumask", &address))
        has_isolated = !read_mask_var(&isolated_mask, address, 0);

    if ((error = find_variable("worker_pool_idr", &address))) return error;
    pool_idr = address;
    if ((error = find_variable("__per_cpu_offset", &address))) return error;
    per_cpu_offset = address;
    if ((error = find_variable("workqueues", &address))) return error;
    workqueues = address;
    link = (__u64)CAST(struct list_head, address)->next;
    return 0;
}

/* include/linux/xarray.h: the lowest two bits of an entry give its type. */
static __always_inline bool is_node(__u64 entry) {
    return (entry & 3) == 2 && entry > 4096;
}

#define SLOTS (bpf_core_field_size(((struct xa_node*)0)->slots) / sizeof(void*))

/* Returns 0 if there is no pool with this ID. */
static __always_inline __u64 find_pool(__u32 id) {
    __u64 entry = (__u64)CAST(struct idr, pool_idr)->idr_rt.xa_head;

    if (!is_node(entry) && id) return 0;
    for (int level = 0; level < MOST_LEVELS && is_node(entry); level++) {
        struct xa_node* node = CAST(struct xa_node, entry - 2);
        __u64 slot = (id >> (node->shift & 31)) & (SLOTS - 1);
        if (bpf_probe_read_kernel(&entry, sizeof(entry), (void*)node->slots + slot * sizeof(entry))) return 0;
    }
    return entry & 3 ? 0 : entry;
}

static __always_inline __u32 greatest_id(void) {
    __u64 root = (__u64)CAST(struct idr, pool_idr)->idr_rt.xa_head;

    if (!is_node(root)) return 0;
    return ((__u32)SLOTS << (CAST(struct xa_node, root - 2)->shift & 31)) - 1;
}

#define READ_ATTRS_MASK(to, attrs, member)            \
    (MASK_IS_POINTER ? read_mask(to, (attrs)->member) \
                     : read_mask(to, &((struct workqueue_attrs___whole*)(attrs))->member))

static __always_inline void read_pool(struct wq_pool* out, struct worker_pool* pool) {
    struct workqueue_attrs* attrs = pool->attrs;

    out->id = pool->id;
    out->refs = pool->refcnt;
    out->idle = pool->nr_idle;
    out->workers = pool->nr_workers;
    out->cpu = pool->cpu;
    out->node = pool->node;
    out->bh = bpf_core_enum_value_exists(enum worker_pool_flags, POOL_BH) &&
              (pool->flags & bpf_core_enum_value(enum worker_pool_flags, POOL_BH));
    out->nice = attrs->nice;
    out->strict = attrs->affn_strict;
    READ_ATTRS_MASK(&out->cpus, attrs, cpumask);
    READ_ATTRS_MASK(&out->pod_cpus, attrs, __pod_cpumask);
}

static long visit_pool(__u32 i, void* ctx) {
    __u32 n = nr_pools;
    __u64 pool;

    if (n >= WQ_POOLS || next_id > last_id) return 1;
    pool = find_pool(next_id++);
    if (!pool) return 0;
    read_pool(&pools[n], CAST(struct worker_pool, pool));
    nr_pools = n + 1;
    return 0;
}

SEC("syscall")
int wqt_pools(void* ctx) {
    nr_pools = 0;
    bpf_rcu_read_lock();
    last_id = greatest_id();
    bpf_loop(IDS_PER_RUN, visit_pool, NULL, 0);
    bpf_rcu_read_unlock();
    return 0;
}

static __always_inline __s32 pool_of(struct pool_workqueue* pwq) {
    struct worker_pool* pool;

    if (!pwq) return -1;
    pool = pwq->pool;
    return pool ? pool->id : -1;
}

static long read_cpu(__u32 cpu, __u64* base) {
    __u64 offset = 0, pwq = 0;

    if (cpu >= WQ_MOST_CPUS) return 1;
    bpf_probe_read_kernel(&offset, sizeof(offset), (void*)per_cpu_offset + cpu * sizeof(long));
    bpf_probe_read_kernel(&pwq, sizeof(pwq), (void*)*base + offset);
    dumped.pools[cpu] = pool_of(CAST(struct pool_workqueue, pwq));
    return 0;
}

#define FLAG(flags, name) ((flags)&VALUE_OF(wq_flags, WQ_##name) ? WQ_DUMP_##name : 0)

static __always_inline __u32 flags_of(struct workqueue_struct* wq) {
    __u32 flags = wq->flags;
    __u32 ordered = flags & VALUE_OF(wq_flags, __WQ_ORDERED) ? WQ_DUMP_ORDERED : 0;

    return FLAG(flags, UNBOUND) | FLAG(flags, BH) | ordered | FLAG(flags, MEM_RECLAIM) |
           FLAG(flags, HIGHPRI) | FLAG(flags, CPU_INTENSIVE) | FLAG(flags, SYSFS) | FLAG(flags, FREEZABLE) |
           FLAG(flags, POWER_EFFICIENT);
}

static __always_inline void read_attrs(struct workqueue_attrs* attrs) {
    dumped.has_attrs = attrs != NULL;
    if (!attrs) return;
    dumped.strict = attrs->affn_strict;
    dumped.scope = scope_of(attrs->affn_scope);
    dumped.nice = attrs->nice;
    READ_ATTRS_MASK(&dumped.cpus, attrs, cpumask);
}

/* A rescuer is freed immediately, but only after its workqueue no longer points to it. */
static __always_inline void read_rescuer(struct workqueue_struct* wq) {
    struct worker* rescuer = wq->rescuer;
    struct task_struct* task;

    dumped.rescuer_pid = 0;
    if (!rescuer) return;
    task = rescuer->task;
    dumped.rescuer_pid = task->pid;
    bpf_probe_read_kernel(dumped.rescuer_name, sizeof(dumped.rescuer_name), task->comm);
    read_mask(&dumped.rescuer_cpus, task->cpus_ptr);
    if (wq->rescuer != rescuer) dumped.rescuer_pid = 0;
}

static __always_inline int read_workqueue(void) {
    __u64 address = link - bpf_core_field_offset(((struct workqueue_struct*)0)->list);
    struct workqueue_struct* wq = CAST(struct workqueue_struct, address);
    __u64 cpu_pwq = (__u64)wq->cpu_pwq;

    /* Was it removed from the list since the last run? */
    if ((__u64)wq->list.prev->next != link) return -EAGAIN;
    bpf_probe_read_kernel_str(dumped.name, sizeof(dumped.name), wq->name);
    dumped.flags = flags_of(wq);
    dumped.max_active = bpf_core_field_exists(wq->max_active) ? wq->max_active : wq->saved_max_active;
    dumped.default_pool = dumped.flags & WQ_DUMP_UNBOUND ? pool_of(wq->dfl_pwq) : -1;
    bpf_loop(nr_cpus, read_cpu, &cpu_pwq, 0);
    read_attrs(dumped.flags & WQ_DUMP_UNBOUND ? attrs_of(wq) : NULL);
    read_rescuer(wq);
    link = (__u64)wq->list.next;
    return 0;
}

SEC("syscall")
int wqt_workqueue(void* ctx) {
    int error;

    bpf_rcu_read_lock();
    error = read_workqueue();
    bpf_rcu_read_unlock();
    return error;
}
