// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_dump.h"

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <set>

#include "base/file.h"
#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/skeleton.h"
#include "dump.skel.h"

namespace wq {
namespace {

constexpr auto kWhat = "reading the kernel's workqueues";
constexpr auto kPods = "the kernel's own pods were not read";
constexpr int kTries = 3;

using Skeleton = OwnedSkeleton<dump_bpf>;

struct MaskLayout {
    CpuSet possible;
    std::uint32_t nr_cpus = 0;     // highest possible CPU plus one
    std::uint32_t mask_bytes = 0;  // size of a mask, a multiple of 8
};

Result<MaskLayout> read_mask_layout() {
    constexpr auto kPossible = "/sys/devices/system/cpu/possible";
    const auto text = read_file(kPossible);
    if (!text) return tl::unexpected(text.error());
    const auto possible = CpuSet::parse_list(*text);
    if (!possible) return tl::unexpected(possible.error().in(kPossible));
    if (possible->empty()) return fail(fmt::format("{} is empty", kPossible));
    MaskLayout out{*possible};
    out.nr_cpus = possible->cpus().back() + 1;
    out.mask_bytes = (out.nr_cpus + 63) / 64 * 8;
    return out;
}

CpuSet cpus_of_mask(const __u64* mask, std::uint32_t mask_bytes) {
    CpuSet out;
    for (unsigned cpu = 0; cpu < mask_bytes * 8; cpu++)
        if (mask[cpu / 64] >> (cpu % 64) & 1) out.add(cpu);
    return out;
}

Status run_pods(const Skeleton& skeleton, const MaskLayout& layout, KernelPods& out, const char* what) {
    static_assert(kAllScopes.size() == WQ_SCOPES);
    if (auto ran = run_once(skeleton->progs.wqt_pods, what); !ran) return ran;
    std::vector<__u64> record((sizeof(wq_pod) + layout.mask_bytes) / sizeof(__u64));
    for (std::uint32_t scope = 0; scope < WQ_SCOPES; scope++) {
        const auto count = static_cast<std::uint32_t>(skeleton->bss->nr_pods[scope]);
        for (std::uint32_t i = 0; i < count; i++) {
            const std::uint32_t key = scope * layout.nr_cpus + i;
            if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.pods), &key, record.data()) != 0)
                return fail_errno("reading the kernel's pods", errno);
            out[kAllScopes[scope]].push_back(
                {cpus_of_mask(&record[1], layout.mask_bytes), static_cast<int>(record[0])});
        }
    }
    return {};
}

// Unless ALL: only the program that reads the pods.
Result<Skeleton> load(const MaskLayout& layout, bool all, const char* what) {
    if (layout.nr_cpus > WQ_MOST_CPUS)
        return fail_errno(fmt::format("{}: {} CPUs", what, layout.nr_cpus), E2BIG);
    return loaded<dump_bpf>(what, [&](dump_bpf& object) {
        object.rodata->nr_cpus = layout.nr_cpus;
        object.rodata->mask_bytes = layout.mask_bytes;
        for (bpf_program* other : {object.progs.wqt_find, object.progs.wqt_pools, object.progs.wqt_workqueue})
            bpf_program__set_autoload(other, all);
        bpf_map__set_value_size(object.maps.pods, static_cast<unsigned>(sizeof(wq_pod) + layout.mask_bytes));
        bpf_map__set_max_entries(object.maps.pods, WQ_SCOPES * layout.nr_cpus);
    });
}

// False if a pool was released after its workqueue was read.
bool pools_are_there(const KernelDump& dump) {
    std::set<int> ids;
    for (const auto& pool : dump.pools) ids.insert(pool.id);
    const auto known = [&](int id) { return ids.contains(id); };
    return std::ranges::all_of(dump.workqueues, [&](const DumpedWorkqueue& wq) {
        return std::ranges::all_of(wq.pools, known, [](const auto& of_cpu) { return of_cpu.second; }) &&
               (!wq.default_pool || known(*wq.default_pool));
    });
}

std::string kind_of(std::uint32_t flags) {
    if (flags & WQ_DUMP_BH) return "bh";
    if (flags & WQ_DUMP_ORDERED) return "ordered";
    return flags & WQ_DUMP_UNBOUND ? "unbound" : "per-cpu";
}

std::vector<std::string> words_of(std::uint32_t flags) {
    static constexpr const char* kWords[] = {"unbound",     "bh",        "ordered",
                                             "mem_reclaim", "highpri",   "cpu_intensive",
                                             "sysfs",       "freezable", "power_efficient"};
    std::vector<std::string> out;
    if (!(flags & (WQ_DUMP_UNBOUND | WQ_DUMP_BH))) out.emplace_back("percpu");
    for (std::size_t i = 0; i < std::size(kWords); i++)
        if (flags >> i & 1) out.emplace_back(kWords[i]);
    return out;
}

class Reader {
  public:
    Reader(Skeleton skeleton, MaskLayout layout)
        : skeleton_(std::move(skeleton)), data_(*skeleton_->bss), layout_(std::move(layout)) {}

    Result<KernelDump> read() {
        if (auto found = run_once(skeleton_->progs.wqt_find, kWhat); !found)
            return tl::unexpected(found.error());
        KernelDump out;
        out.default_scope = scope_at(data_.default_scope);
        out.unbound = cpus_of(data_.unbound_mask);
        if (data_.has_requested) out.requested = cpus_of(data_.requested_mask);
        if (data_.has_isolated) out.isolated = cpus_of(data_.isolated_mask);
        if (auto read = run_pods(skeleton_, layout_, out.scopes, kWhat); !read)
            return tl::unexpected(read.error());
        if (auto read = read_workqueues(out); !read) return tl::unexpected(read.error());
        if (auto read = read_pools(out); !read) return tl::unexpected(read.error());
        if (!pools_are_there(out)) return fail_errno(kWhat, EAGAIN);
        return out;
    }

  private:
    Status read_pools(KernelDump& out) {
        do {
            if (auto ran = run_once(skeleton_->progs.wqt_pools, kWhat); !ran) return ran;
            for (std::uint32_t i = 0; i < data_.nr_pools; i++) out.pools.push_back(pool_of(data_.pools[i]));
        } while (data_.next_id <= data_.last_id);
        return {};
    }

    Status read_workqueues(KernelDump& out) {
        std::set<std::uint64_t> seen;
        while (data_.link != data_.workqueues) {
            if (!seen.insert(data_.link).second) return fail_errno(kWhat, EAGAIN);
            if (auto ran = run_once(skeleton_->progs.wqt_workqueue, kWhat); !ran) return ran;
            out.workqueues.push_back(workqueue_of(data_.dumped, out.default_scope));
        }
        return {};
    }

    [[nodiscard]] CpuSet cpus_of(const wq_mask& mask) const {
        return cpus_of_mask(mask.words, layout_.mask_bytes);
    }

    DumpedPool pool_of(const wq_pool& pool) const {
        return {.id = pool.id,
                .refs = pool.refs,
                .nice = pool.nice,
                .idle = pool.idle,
                .workers = pool.workers,
                .cpu = pool.cpu >= 0 ? std::optional(static_cast<unsigned>(pool.cpu)) : std::nullopt,
                .node = pool.node,
                .cpus = cpus_of(pool.cpus),
                .pod_cpus = cpus_of(pool.pod_cpus),
                .strict = pool.strict != 0,
                .bh = pool.bh != 0};
    }

    DumpedAttrs attrs_of(const wq_dumped& dumped, std::optional<Scope> dfl) const {
        const auto own = scope_at(dumped.scope);
        const bool is_default = dumped.scope == WQ_SCOPE_DEFAULT;
        return {std::string(own          ? name_of(*own)
                            : is_default ? "default"
                                         : "unknown"),
                is_default ? dfl : own, dumped.strict != 0, dumped.nice, cpus_of(dumped.cpus)};
    }

    DumpedWorkqueue workqueue_of(const wq_dumped& dumped, std::optional<Scope> dfl) const {
        DumpedWorkqueue out;
        out.name = sysfs_name(dumped.name);
        out.kind = kind_of(dumped.flags);
        out.flags = words_of(dumped.flags);
        if (dumped.has_attrs) out.attrs = attrs_of(dumped, dfl);
        for (const unsigned cpu : layout_.possible.cpus())
            if (dumped.pools[cpu] >= 0) out.pools[cpu] = dumped.pools[cpu];
        if (dumped.default_pool >= 0) out.default_pool = dumped.default_pool;
        out.max_active = dumped.max_active;
        if (dumped.rescuer_pid != 0)
            out.rescuer =
                DumpedRescuer{dumped.rescuer_name, dumped.rescuer_pid, cpus_of(dumped.rescuer_cpus)};
        return out;
    }

    static std::optional<Scope> scope_at(int index) {
        return index >= 0 ? std::optional(kAllScopes.at(static_cast<std::size_t>(index))) : std::nullopt;
    }

    Skeleton skeleton_;
    dump_bpf::dump_bpf__bss& data_;
    MaskLayout layout_;
};

Result<KernelDump> read_once() {
    const auto layout = read_mask_layout();
    if (!layout) return tl::unexpected(layout.error().in(kWhat));
    auto skeleton = load(*layout, true, kWhat);
    if (!skeleton) return tl::unexpected(skeleton.error());
    return Reader(std::move(*skeleton), *layout).read();
}

// Whether the pods of each scope are disjoint and not empty, and all scopes cover the same CPUs.
bool make_sense(const KernelPods& all) {
    std::optional<CpuSet> cpus;
    for (const auto& [scope, pods] : all) {
        CpuSet seen;
        for (const KernelPod& pod : pods) {
            if (pod.cpus.empty() || pod.cpus.intersects(seen)) return false;
            seen |= pod.cpus;
        }
        if (cpus.value_or(seen) != seen) return false;
        cpus = seen;
    }
    return cpus && !cpus->empty();
}

}  // namespace

Result<KernelDump> read_kernel_dump() {
    auto dump = read_once();
    for (int i = 1; i < kTries && !dump && dump.error().code == EAGAIN; i++) dump = read_once();
    return dump;
}

Result<KernelPods> read_kernel_pods() {
    const auto layout = read_mask_layout();
    if (!layout) return tl::unexpected(layout.error().in(kPods));
    const auto skeleton = load(*layout, false, kPods);
    if (!skeleton) return tl::unexpected(skeleton.error());
    KernelPods out;
    if (auto done = run_pods(*skeleton, *layout, out, kPods); !done) return tl::unexpected(done.error());
    return out;
}

void read_pods(const Paths& paths, KernelInfo& kernel) {
    if (!paths.root.empty() || kernel.scopes.empty()) return;
    auto left = find_pods(pods_path(paths));
    auto pods = left ? std::move(*left) : read_kernel_pods();
    if (!pods)
        kernel.pods_unread = pods.error().text;
    else if (!make_sense(*pods))
        kernel.pods_unread = "the pods that were read contradict each other";
    else
        kernel.pods = std::move(*pods);
}

}  // namespace wq
