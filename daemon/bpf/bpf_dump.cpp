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
#include "bpf/bpf_masks.h"
#include "bpf/bpf_pods_map.h"
#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/skeleton.h"
#include "dump.skel.h"

namespace wq {
namespace {

constexpr auto kWhat = "reading the kernel's workqueues";
constexpr int kTries = 3;

using Skeleton = OwnedSkeleton<dump_bpf>;

// The highest possible node plus one (the kernel's nr_node_ids).
Result<std::uint32_t> read_nr_nodes() {
    const std::string path = "/sys/devices/system/node/possible";
    const auto text = read_file(path);
    if (!text && text.error().code == ENOENT) return 1;  // a kernel without NUMA
    if (!text) return tl::unexpected(text.error());
    const auto nodes = CpuSet::parse_list(*text);
    if (!nodes || nodes->empty()) return fail(path + ": not a list of nodes");
    return nodes->cpus().back() + 1;
}

Result<Skeleton> loaded(const MaskLayout& layout, std::uint32_t nr_nodes) {
    const BpfErrors errors;
    if (layout.nr_cpus > WQ_MOST_CPUS || nr_nodes > WQ_MOST_NODES)
        return fail_errno(fmt::format("{}: {} CPUs, {} nodes", kWhat, layout.nr_cpus, nr_nodes), E2BIG);
    Skeleton skeleton(dump_bpf::open());
    if (!skeleton) return errors.fail(kWhat, errno);
    skeleton->rodata->nr_cpus = layout.nr_cpus;
    skeleton->rodata->mask_bytes = layout.mask_bytes;
    skeleton->rodata->nr_nodes = nr_nodes;
    make_room_for_pods(skeleton->maps.pods, layout);
    if (int code = dump_bpf::load(skeleton.get())) return errors.fail(kWhat, code);
    return skeleton;
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
        if (auto read = read_scopes(out); !read) return tl::unexpected(read.error());
        if (auto read = read_workqueues(out); !read) return tl::unexpected(read.error());
        if (auto read = read_pools(out); !read) return tl::unexpected(read.error());
        if (!pools_are_there(out)) return fail_errno(kWhat, EAGAIN);
        return out;
    }

  private:
    Status read_scopes(KernelDump& out) {
        if (auto ran = run_once(skeleton_->progs.wqt_pods, kWhat); !ran) return ran;
        auto pods = read_pods_map(skeleton_->maps.pods, data_.nr_pods, layout_);
        if (!pods) return tl::unexpected(pods.error());
        out.scopes = std::move(*pods);
        return {};
    }

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
    [[nodiscard]] DumpedPool pool_of(const wq_pool& pool) const;
    [[nodiscard]] DumpedWorkqueue workqueue_of(const wq_dumped& dumped, std::optional<Scope> dfl) const;
    [[nodiscard]] DumpedAttrs attrs_of(const wq_dumped& dumped, std::optional<Scope> dfl) const;
    static std::optional<Scope> scope_at(int index) {
        return index >= 0 ? std::optional(kAllScopes.at(static_cast<std::size_t>(index))) : std::nullopt;
    }

    Skeleton skeleton_;
    dump_bpf::dump_bpf__bss& data_;
    MaskLayout layout_;
};

DumpedPool Reader::pool_of(const wq_pool& pool) const {
    DumpedPool out;
    out.id = pool.id;
    out.refs = pool.refs;
    out.nice = pool.nice;
    out.idle = pool.idle;
    out.workers = pool.workers;
    if (pool.cpu >= 0) out.cpu = static_cast<unsigned>(pool.cpu);
    out.node = pool.node;
    out.cpus = cpus_of(pool.cpus);
    out.pod_cpus = cpus_of(pool.pod_cpus);
    out.strict = pool.strict != 0;
    out.bh = pool.bh != 0;
    return out;
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

DumpedAttrs Reader::attrs_of(const wq_dumped& dumped, std::optional<Scope> dfl) const {
    DumpedAttrs out;
    const auto own = scope_at(dumped.scope);
    out.scope = own ? name_of(*own) : dumped.scope == WQ_SCOPE_DEFAULT ? "default" : "unknown";
    out.effective = dumped.scope == WQ_SCOPE_DEFAULT ? dfl : own;
    out.strict = dumped.strict != 0;
    out.nice = dumped.nice;
    out.cpus = cpus_of(dumped.cpus);
    return out;
}

DumpedWorkqueue Reader::workqueue_of(const wq_dumped& dumped, std::optional<Scope> dfl) const {
    DumpedWorkqueue out;
    out.name = sysfs_name(dumped.name);
    out.kind = kind_of(dumped.flags);
    out.flags = words_of(dumped.flags);
    if (dumped.has_attrs) out.attrs = attrs_of(dumped, dfl);
    for (const unsigned cpu : layout_.possible.cpus())
        if (dumped.pools[cpu] >= 0) out.pools[cpu] = dumped.pools[cpu];
    if (dumped.default_pool >= 0) out.default_pool = dumped.default_pool;
    out.max_active = dumped.max_active;
    for (int i = 0; i < dumped.nr_nodes; i++)
        out.nodes.push_back({i + 1 < dumped.nr_nodes ? i : -1, dumped.nodes[i].active, dumped.nodes[i].max});
    if (dumped.rescuer_pid != 0)
        out.rescuer = DumpedRescuer{dumped.rescuer_name, dumped.rescuer_pid, cpus_of(dumped.rescuer_cpus)};
    return out;
}

Result<KernelDump> read_once() {
    const auto layout = read_mask_layout();
    if (!layout) return tl::unexpected(layout.error().in(kWhat));
    const auto nr_nodes = read_nr_nodes();
    if (!nr_nodes) return tl::unexpected(nr_nodes.error().in(kWhat));
    auto skeleton = loaded(*layout, *nr_nodes);
    if (!skeleton) return tl::unexpected(skeleton.error());
    return Reader(std::move(*skeleton), *layout).read();
}

}  // namespace

Result<KernelDump> read_kernel_dump() {
    auto dump = read_once();
    for (int i = 1; i < kTries && !dump && dump.error().code == EAGAIN; i++) dump = read_once();
    return dump;
}

}  // namespace wq
