// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_workqueues.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "bpf/bpf_shared.h"
#include "bpf/skeleton.h"
#include "workqueues.skel.h"

namespace wq {
namespace {

constexpr std::size_t kMostText = std::size_t{16} << 20;
constexpr int kTries = 3;
constexpr const char* kListing = "listing workqueues";

struct DestroyLink {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, DestroyLink>;

KernelWorkqueue made_of(const wq_record& record) {
    return {.address = record.address,
            .name = sysfs_name(record.name),
            .pools = record.pools,
            .in_sysfs = record.in_sysfs != 0,
            .follows_default = record.follows_default != 0,
            .unbound = record.unbound != 0,
            .mem_reclaim = record.mem_reclaim != 0,
            .bh = record.bh != 0,
            .managed = record.managed != 0,
            .started = record.started,
            .completed = record.completed,
            .cpu_time_us = record.cpu_time,
            .cpu_intensive = record.cpu_intensive,
            .cm_wakeup = record.cm_wakeup,
            .repatriated = record.repatriated,
            .mayday = record.mayday,
            .rescued = record.rescued,
            .in_flight = record.in_flight,
            .all_completed = record.all_completed};
}

// The complete output of an iterator.
Result<std::string> run(const bpf_link& link) {
    const BpfErrors errors;
    const Fd fd(bpf_iter_create(bpf_link__fd(&link)));
    if (!fd) return errors.fail(kListing, errno);
    auto text = read_all(fd.get(), kMostText);
    if (!text) return tl::unexpected(text.error().in(kListing));
    return text;
}

// Error: EAGAIN if the list changed during the walk.
Result<std::vector<KernelWorkqueue>> walk(workqueues_bpf& skeleton, const bpf_link& link, bool unbound_only) {
    auto& state = *skeleton.bss;
    state.unbound_only = unbound_only;
    state.first = state.next = 0;
    state.seen = state.finished = state.torn = 0;
    const auto text = run(link);
    if (!text) return tl::unexpected(text.error());
    if (!state.first) return fail(std::string(kListing) + ": no rescuer found to start from");
    if (!state.finished) return fail_errno(kListing, EAGAIN);

    std::vector<KernelWorkqueue> all;
    all.reserve(text->size() / sizeof(wq_record));
    for (std::size_t at = 0; at + sizeof(wq_record) <= text->size(); at += sizeof(wq_record)) {
        wq_record record;
        std::memcpy(&record, text->data() + at, sizeof(record));
        all.push_back(made_of(record));
    }
    return all;
}

}  // namespace

struct WorkqueueWalk::Loaded {
    OwnedSkeleton<workqueues_bpf> skeleton;
    Link link;
    Link look;  // visits only our own task, which always exists
};

static bpf_link* attach_to_own_task(const bpf_program* program) {
    bpf_iter_link_info task{};
    task.task.tid = static_cast<__u32>(::getpid());
    bpf_iter_attach_opts options{};
    options.sz = sizeof(options);
    options.link_info = &task;
    options.link_info_len = sizeof(task);
    return bpf_program__attach_iter(program, &options);
}

WorkqueueWalk::WorkqueueWalk(bool looks) : looks_(looks) {}
WorkqueueWalk::~WorkqueueWalk() = default;

// The kernel gives a pool the lowest ID that is free. Each CPU has four pools of its own; the others are for
// unbound pools of several attributes.
static unsigned most_pools() {
    return 1024 + 16 * static_cast<unsigned>(std::max(libbpf_num_possible_cpus(), 1));
}

Status WorkqueueWalk::load() {
    if (loaded_) return {};
    auto skeleton = loaded<workqueues_bpf>(kListing, [this](workqueues_bpf& object) {
        bpf_program__set_autoload(object.progs.wqt_look, looks_);
        if (looks_) bpf_map__set_max_entries(object.maps.marks, most_pools());
    });
    if (!skeleton) return tl::unexpected(skeleton.error());
    const BpfErrors errors;
    auto out = std::make_unique<Loaded>();
    out->link.reset(bpf_program__attach_iter((*skeleton)->progs.wqt_walk, nullptr));
    if (!out->link) return errors.fail(kListing, errno);
    if (looks_) out->look.reset(attach_to_own_task((*skeleton)->progs.wqt_look));
    if (looks_ && !out->look) return errors.fail(kListing, errno);
    out->skeleton = std::move(*skeleton);
    loaded_ = std::move(out);
    return {};
}

Result<std::vector<KernelWorkqueue>> WorkqueueWalk::list(bool unbound_only) {
    if (auto there = load(); !there) return tl::unexpected(there.error());
    const auto once = [&] { return walk(*loaded_->skeleton, *loaded_->link, unbound_only); };
    auto all = once();
    for (int i = 1; i < kTries && !all && all.error().code == EAGAIN; i++) all = once();
    if (!all) return all;
    const auto lasting = std::ranges::find(*all, "events", &KernelWorkqueue::name);  // it always exists
    if (lasting != all->end()) loaded_->skeleton->bss->anchor = lasting->address;
    return all;
}

Result<std::vector<KernelWorkqueue>> WorkqueueWalk::list_on(const CpuSet& cpus) {
    if (auto there = load(); !there) return tl::unexpected(there.error());
    auto& state = *loaded_->skeleton->bss;
    set_cpus(state.counted_cpus, cpus);
    state.on_some_cpus = 1;
    auto all = list();
    state.on_some_cpus = 0;
    if (all) std::erase_if(*all, &KernelWorkqueue::unbound);
    return all;
}

Result<std::vector<KernelWorkqueue>> WorkqueueWalk::health() {
    if (auto there = load(); !there) return tl::unexpected(there.error());
    auto& state = *loaded_->skeleton->bss;
    state.for_health = 1;
    auto all = list();
    state.for_health = 0;
    return all;
}

Result<KernelLook> WorkqueueWalk::look(const std::vector<std::uint64_t>& addresses) {
    static_assert(kMostLooked == WQ_TARGETS);
    if (auto there = load(); !there) return tl::unexpected(there.error());
    auto& state = *loaded_->skeleton->bss;
    if (addresses.size() > kMostLooked || !loaded_->look || state.anchor == 0)
        return fail(std::string(kListing) + ": too many addresses, or no workqueue to start from", EINVAL);
    auto& asked_default = loaded_->skeleton->data->asked_default;
    asked_default = -1;
    std::ranges::fill(state.asked, 0);
    for (std::size_t i = 0; i < addresses.size(); i++) {
        state.asked[i] = addresses[i];
        if (addresses[i] == 0) asked_default = static_cast<int>(i);
    }
    if (const auto done = run(*loaded_->look); !done) return tl::unexpected(done.error());
    if (!state.looked) return fail_errno(kListing, EAGAIN);
    KernelLook out{state.looked_at, state.jiffies_then, {}};
    for (std::size_t i = 0; i < addresses.size(); i++) {
        const wq_edge& edge = state.edges[i];
        const unsigned seen = edge.uncounted == 0 ? 1 : 0;
        out.of.push_back({edge.pools, edge.started, edge.completed, edge.cpu_time, seen * edge.worker_pools,
                          seen * edge.workers});
    }
    return out;
}

Result<KernelWorkqueue> find_workqueue(const std::vector<KernelWorkqueue>& workqueues,
                                       const std::string& name) {
    const KernelWorkqueue* found = nullptr;
    int others = 0;
    for (const auto& one : workqueues) {
        if (one.name != name) continue;
        if (one.in_sysfs) return one;
        if (found) others++;
        found = &one;
    }
    if (!found) return fail("there is no workqueue '" + name + "'", ENOENT);
    if (others)
        return fail("several workqueues are called '" + name + "', none of them is in sysfs", ENOTUNIQ);
    return *found;
}

}  // namespace wq
