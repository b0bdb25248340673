// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_workqueues.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/fd.h"
#include "bpf/bpf_shared.h"
#include "kernel/bpf_errors.h"
#include "workqueues.skel.h"

namespace wq {
namespace {

constexpr std::size_t kMostText = std::size_t{16} << 20;
constexpr int kTries = 3;
constexpr const char* kListing = "listing workqueues";

struct Destroy {
    void operator()(workqueues_bpf* skeleton) const { workqueues_bpf::destroy(skeleton); }
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

KernelWorkqueue made_of(const wq_record& record) {
    KernelWorkqueue out;
    out.address = record.address;
    out.name = sysfs_name(record.name);
    out.pools = record.pools;
    out.in_sysfs = record.in_sysfs != 0;
    out.follows_default = record.follows_default != 0;
    out.unbound = record.unbound != 0;
    out.mem_reclaim = record.mem_reclaim != 0;
    out.bh = record.bh != 0;
    out.managed = record.managed != 0;
    out.started = record.started;
    out.completed = record.completed;
    out.cpu_time_us = record.cpu_time;
    out.cpu_intensive = record.cpu_intensive;
    out.cm_wakeup = record.cm_wakeup;
    out.repatriated = record.repatriated;
    out.mayday = record.mayday;
    out.rescued = record.rescued;
    return out;
}

// EAGAIN: the list changed while it was walked.
Result<std::vector<KernelWorkqueue>> walk(workqueues_bpf& skeleton, bpf_link& link) {
    const BpfErrors errors;
    auto& state = *skeleton.bss;
    state.first = state.next = 0;
    state.seen = state.finished = state.torn = 0;
    const Fd fd(bpf_iter_create(bpf_link__fd(&link)));
    if (!fd) return errors.fail(kListing, errno);
    const auto text = read_all(fd.get(), kMostText);
    if (!text) return tl::unexpected(text.error().in(kListing));
    if (!state.first) return fail(std::string(kListing) + ": no task leads to them");
    if (!state.finished) return fail_errno(kListing, EAGAIN);

    std::vector<KernelWorkqueue> all;
    for (std::size_t at = 0; at + sizeof(wq_record) <= text->size(); at += sizeof(wq_record)) {
        wq_record record;
        std::memcpy(&record, text->data() + at, sizeof(record));
        all.push_back(made_of(record));
    }
    return all;
}

}  // namespace

struct WorkqueueWalk::Loaded {
    std::unique_ptr<workqueues_bpf, Destroy> skeleton;
    std::unique_ptr<bpf_link, Destroy> link;
};

WorkqueueWalk::WorkqueueWalk(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
WorkqueueWalk::WorkqueueWalk(WorkqueueWalk&&) noexcept = default;
WorkqueueWalk::~WorkqueueWalk() = default;

Result<WorkqueueWalk> WorkqueueWalk::load() {
    const BpfErrors errors;
    auto loaded = std::make_unique<Loaded>();
    loaded->skeleton.reset(workqueues_bpf::open());
    if (!loaded->skeleton) return errors.fail(kListing, errno);
    if (int code = workqueues_bpf::load(loaded->skeleton.get())) return errors.fail(kListing, code);
    loaded->link.reset(bpf_program__attach_iter(loaded->skeleton->progs.wqt_walk, nullptr));
    if (!loaded->link) return errors.fail(kListing, errno);
    return WorkqueueWalk(std::move(loaded));
}

Result<std::vector<KernelWorkqueue>> WorkqueueWalk::list() {
    const auto once = [this] { return walk(*loaded_->skeleton, *loaded_->link); };
    auto all = once();
    for (int i = 1; i < kTries && !all && all.error().code == EAGAIN; i++) all = once();
    return all;
}

Result<std::vector<KernelWorkqueue>> list_kernel_workqueues() {
    auto walk = WorkqueueWalk::load();
    if (!walk) return tl::unexpected(walk.error());
    return walk->list();
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
