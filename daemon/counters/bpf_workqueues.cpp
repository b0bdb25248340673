// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/bpf_workqueues.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "counters/bpf_errors.h"
#include "counters/bpf_shared.h"
#include "kernel/fd.h"
#include "workqueues.skel.h"

namespace wq {
namespace {

constexpr std::size_t kMostText = std::size_t{16} << 20;
constexpr int kTries = 3;

struct Destroy {
    void operator()(workqueues_bpf* skeleton) const { workqueues_bpf::destroy(skeleton); }
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

KernelWorkqueue made_of(const wq_record& record) {
    return {record.address, sysfs_name(record.name), record.started, record.in_sysfs != 0,
            record.follows_default != 0};
}

// EAGAIN: the list changed while it was walked.
Result<std::vector<KernelWorkqueue>> walk() {
    const BpfErrors errors;
    std::unique_ptr<workqueues_bpf, Destroy> skeleton(workqueues_bpf::open());
    if (!skeleton) return errors.fail("listing workqueues", errno);
    if (int code = workqueues_bpf::load(skeleton.get())) return errors.fail("listing workqueues", code);
    std::unique_ptr<bpf_link, Destroy> link(bpf_program__attach_iter(skeleton->progs.wqt_walk, nullptr));
    if (!link) return errors.fail("listing workqueues", errno);
    const Fd fd(bpf_iter_create(bpf_link__fd(link.get())));
    if (!fd) return errors.fail("listing workqueues", errno);
    const auto text = read_all(fd.get(), kMostText);
    if (!text) return tl::unexpected(text.error().in("listing workqueues"));
    if (!skeleton->bss->first) return fail("listing workqueues: no task leads to them");
    if (!skeleton->bss->finished) return fail_errno("listing workqueues", EAGAIN);

    std::vector<KernelWorkqueue> all;
    for (std::size_t at = 0; at + sizeof(wq_record) <= text->size(); at += sizeof(wq_record)) {
        wq_record record;
        std::memcpy(&record, text->data() + at, sizeof(record));
        all.push_back(made_of(record));
    }
    return all;
}

}  // namespace

std::string sysfs_name(std::string name) {
    std::replace(name.begin(), name.end(), '/', '!');
    return name;
}

Result<std::vector<KernelWorkqueue>> list_kernel_workqueues() {
    auto all = walk();
    for (int i = 1; i < kTries && !all && all.error().code == EAGAIN; i++) all = walk();
    return all;
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
