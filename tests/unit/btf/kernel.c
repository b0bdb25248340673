// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
// The types of a kernel as 6.6 has them, as far as our programs read them. With LIKE_7_3: those of a kernel
// that renamed and moved what 7.3 did, and more: every enum's value is another.
typedef unsigned long long u64;
struct list_head {
    struct list_head *next, *prev;
};
#ifdef LIKE_7_3
enum wq_affn_scope {
    WQ_AFFN_CPU,
    WQ_AFFN_SMT,
    WQ_AFFN_CACHE,
    WQ_AFFN_CACHE_SHARD,
    WQ_AFFN_NUMA,
    WQ_AFFN_DFL
};
enum wq_flags { WQ_UNBOUND = 1 << 5, WQ_FREEZABLE = 1 << 2, WQ_MEM_RECLAIM = 1 << 4, __WQ_ORDERED = 1 << 19 };
enum pool_workqueue_stats {
    PWQ_STAT_COMPLETED,
    PWQ_STAT_RESCUED,
    PWQ_STAT_MAYDAY,
    PWQ_STAT_STARTED,
    PWQ_STAT_REPATRIATED,
    PWQ_STAT_CM_WAKEUP,
    PWQ_STAT_CPU_INTENSIVE,
    PWQ_STAT_CPU_TIME,
};
enum worker_pool_flags { POOL_BH = 1 << 3 };
#define SLOTS 16
#define ATTRS attrs
#define NAME_SIZE 32
#define MAX_ACTIVE max_active
#else
enum wq_affn_scope { WQ_AFFN_DFL, WQ_AFFN_CPU, WQ_AFFN_SMT, WQ_AFFN_CACHE, WQ_AFFN_NUMA, WQ_AFFN_SYSTEM };
enum { WQ_UNBOUND = 1 << 1, WQ_FREEZABLE = 1 << 2, WQ_MEM_RECLAIM = 1 << 3, __WQ_ORDERED = 1 << 17 };
enum pool_workqueue_stats {
    PWQ_STAT_STARTED,
    PWQ_STAT_COMPLETED,
    PWQ_STAT_CPU_TIME,
    PWQ_STAT_CPU_INTENSIVE,
    PWQ_STAT_CM_WAKEUP,
    PWQ_STAT_REPATRIATED,
    PWQ_STAT_MAYDAY,
    PWQ_STAT_RESCUED,
};
#define SLOTS 64
#define ATTRS unbound_attrs
#define NAME_SIZE 24
#define MAX_ACTIVE saved_max_active
#endif
struct cpumask {
    unsigned long bits[128];
};
struct workqueue_attrs {
    int nice;
    struct cpumask* cpumask;
    struct cpumask* __pod_cpumask;
    _Bool affn_strict;
    enum wq_affn_scope affn_scope;
    _Bool ordered;
};
struct wq_pod_type {
    int nr_pods;
    struct cpumask** pod_cpus;
    int* pod_node;
    int* cpu_pod;
};
struct worker_pool {
    int lock;
    int cpu;
    int node;
    int id;
    unsigned int flags;
    int nr_workers;
    int nr_idle;
    struct workqueue_attrs* attrs;
    int refcnt;
};
struct xarray {
    int xa_lock;
    unsigned int xa_flags;
    void* xa_head;
};
struct xa_node {
    unsigned char shift;
    unsigned char offset;
    void* slots[SLOTS];
};
struct idr {
    struct xarray idr_rt;
    unsigned int idr_base;
};
struct workqueue_struct {
    struct list_head pwqs;
    struct list_head list;
    char mutex[32];
    int work_color;
    struct worker* rescuer;
    int MAX_ACTIVE;
    struct workqueue_attrs* ATTRS;
    struct pool_workqueue* dfl_pwq;
    struct wq_device* wq_dev;
    char name[NAME_SIZE];
    unsigned int flags;
    struct pool_workqueue** cpu_pwq;
};
struct pool_workqueue {
    struct worker_pool* pool;
    struct workqueue_struct* wq;
    int work_color;
    int flush_color;
    int refcnt;
    int nr_in_flight[16];
#ifdef LIKE_7_3
    _Bool plugged;
#endif
    int nr_active;
    struct list_head inactive_works;
    struct list_head pwqs_node;
    u64 stats[8];
};
struct work_struct {
    unsigned long data;
    struct list_head entry;
    void (*func)(struct work_struct*);
};
struct worker {
    struct list_head entry;
    struct work_struct* current_work;
    void* current_func;
    struct pool_workqueue* current_pwq;
    u64 current_at;
    char desc[32];
    struct task_struct* task;
    struct workqueue_struct* rescue_wq;
};
struct kthread {
    unsigned long flags;
    unsigned int cpu;
#ifdef LIKE_7_3
    unsigned int node;
#endif
    void* data;
};
struct sched_entity {
    u64 exec_start;
    u64 sum_exec_runtime;
};
struct task_struct {
    char thread_info[24];
    unsigned int flags;
    struct sched_entity se;
    int pid;
    struct cpumask* cpus_ptr;
    char comm[16];
    void* worker_private;
};
struct seq_file;
struct bpf_iter_meta {
    struct seq_file* seq;
    u64 session_id;
};
struct bpf_iter__task {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
};

// Only what is used gets described.
struct {
    struct workqueue_struct wq;
    struct pool_workqueue pwq;
    struct work_struct work;
    struct worker worker;
    struct kthread kthread;
    struct task_struct task;
    struct bpf_iter__task iter;
    struct bpf_iter_meta meta;
    struct workqueue_attrs attrs;
    struct cpumask cpumask;
    struct wq_pod_type pods;
    struct worker_pool pool;
    struct idr idr;
    struct xa_node node;
#ifdef LIKE_7_3
    enum worker_pool_flags pool_flags;
    enum wq_flags flags;
#endif
    enum pool_workqueue_stats stats;
} everything;
