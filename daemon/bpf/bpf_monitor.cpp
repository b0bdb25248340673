// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_monitor.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/skeleton.h"
#include "machine/kernel_info.h"
#include "top.skel.h"

namespace wq {
namespace {

using Skeleton = OwnedSkeleton<top_bpf>;

bool is_named(const KernelWorkqueue& workqueue, const std::vector<std::string>& names) {
    return names.empty() || std::ranges::find(names, workqueue.name) != names.end();
}

// Adds existing workqueues to the map, one by one, because the map may not have room for all.
void add_named(const top_bpf& skeleton, const std::vector<KernelWorkqueue>& workqueues) {
    const wq_times none{};
    for (const auto& one : workqueues)
        bpf_map__update_elem(skeleton.maps.times, &one.address, sizeof(one.address), &none, sizeof(none),
                             BPF_NOEXIST);
}

Result<Skeleton> load(Seen seen, bool only_named, bool functions) {
    return loaded<top_bpf>("loading the programs that watch work", [&](top_bpf& object) {
        object.rodata->only_named = only_named;
        object.rodata->functions_too = functions;
        object.rodata->preemptible = kernel_offers("bpf_preempt_disable");
        object.rodata->exit_seen = seen.exit;
        bpf_program__set_autoload(object.progs.wqt_top_enter, seen.entry);
        bpf_program__set_autoload(object.progs.wqt_top_leave, seen.exit);
        bpf_program__set_autoload(object.progs.wqt_top_end, functions);
        if (!functions) bpf_map__set_max_entries(object.maps.functions, 1);  // not used
    });
}

// Attaches in the reverse of the order in which an item passes the places, so that an item seen at one place
// is also seen at the next.
Status attach_all(top_bpf& skeleton) {
    auto& programs = skeleton.progs;
    auto& links = skeleton.links;
    return attach_in_order("attaching the programs that watch work",
                           {{programs.wqt_top_end, &links.wqt_top_end},
                            {programs.wqt_top_start, &links.wqt_top_start},
                            {programs.wqt_top_leave, &links.wqt_top_leave},
                            {programs.wqt_top_queue, &links.wqt_top_queue},
                            {programs.wqt_top_enter, &links.wqt_top_enter}});
}

WorkTimes summed(const wq_times& times) {
    WorkTimes out;
    out.waited.resize(WQ_TIME_BUCKETS);
    out.enqueued.resize(WQ_TIME_BUCKETS);
    for (const auto& stripe : times.stripes) {
        out.queued += stripe.queued;
        out.lock_ns += stripe.lock;
        for (unsigned i = 0; i < WQ_TIME_BUCKETS; i++) {
            out.waited[i] += stripe.waited[i];
            out.enqueued[i] += stripe.enqueued[i];
        }
    }
    return out;
}

// The reason that PROGRAM, fentry or fexit, is missing: some kernels refuse to attach to a function.
std::string why_not(const char* program, const Error& error) {
    constexpr int kNotSupported = 524;  // the kernel's ENOTSUPP
    const int code = error.code;
    if (code == EPERM || code == EACCES || code == EOPNOTSUPP || code == kNotSupported)
        return std::string("this kernel refuses ") + program;
    return error.text;
}

class BpfMonitor : public WorkMonitor {
  public:
    Status attach(const std::vector<std::string>& names, bool functions) override {
        skeleton_.reset();
        names_ = names;
        limits_.clear();
        const auto there = list_named();
        if (!there) return tl::unexpected(there.error());
        for (const auto& name : names)
            if (std::ranges::find(*there, name, &KernelWorkqueue::name) == there->end())
                return fail("there is no workqueue '" + name + "'", ENOENT);
        return attach_probes(*there, functions);
    }

    Result<WorkSample> sample() override {
        WorkSample out;
        if (skeleton_) read_probes(out);
        auto there = list_named();
        if (!there) return tl::unexpected(there.error());
        if (skeleton_) forget_gone(*there, out);
        if (skeleton_ && !names_.empty()) add_named(*skeleton_, *there);
        out.workqueues = std::move(*there);
        out.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return out;
    }

    [[nodiscard]] std::string limits() const override { return limits_; }

  private:
    Result<std::vector<KernelWorkqueue>> list_named() {
        if (!walk_) {
            auto loaded = WorkqueueWalk::load();
            if (!loaded) return tl::unexpected(loaded.error());
            walk_.emplace(std::move(*loaded));
        }
        auto all = walk_->list();
        if (all) std::erase_if(*all, [this](const auto& one) { return !is_named(one, names_); });
        return all;
    }

    Status attach_probes(const std::vector<KernelWorkqueue>& there, bool functions) {
        Seen seen;
        Error refused;
        auto skeleton = attach_seen(
            {},
            [&](Seen now) -> Result<Skeleton> {
                auto out = load(now, !names_.empty(), functions);
                if (!out) return out;
                if (!names_.empty()) add_named(**out, there);
                if (const auto done = attach_all(**out); !done) return tl::unexpected(done.error());
                return out;
            },
            seen, refused);
        if (!skeleton) return tl::unexpected(skeleton.error());
        const std::string enqueue = "the time in queue_work()";
        if (!seen.entry)
            limits_ = "the wait for pool->lock, " + enqueue + " (" + why_not("fentry", refused) + ")";
        else if (!seen.exit)
            limits_ = enqueue + " (" + why_not("fexit", refused) + ")";
        skeleton_ = std::move(*skeleton);
        return {};
    }

    void read_probes(WorkSample& out) const {
        out.lost = skeleton_->bss->lost;
        for_each<std::uint64_t, wq_times>(
            skeleton_->maps.times,
            [&](std::uint64_t address, const wq_times& one) { out.times[address] = summed(one); });
        for_each<wq_function_key, wq_function>(
            skeleton_->maps.functions, [&](const wq_function_key& key, const wq_function& one) {
                out.functions[{key.workqueue, key.function}] = {one.function, one.items, one.busy};
            });
    }

    // Deletes the entries of workqueues that no longer exist. SAMPLE was read before the list, so a workqueue
    // in SAMPLE cannot be newer than the list.
    void forget_gone(const std::vector<KernelWorkqueue>& there, const WorkSample& sample) const {
        std::set<std::uint64_t> alive;
        for (const auto& one : there) alive.insert(one.address);
        for (const auto& [address, times] : sample.times)
            if (!alive.contains(address))
                bpf_map__delete_elem(skeleton_->maps.times, &address, sizeof(address), 0);
        for (const auto& [at, times] : sample.functions) {
            const wq_function_key key{at.first, at.second};
            if (!alive.contains(at.first))
                bpf_map__delete_elem(skeleton_->maps.functions, &key, sizeof(key), 0);
        }
    }

    std::vector<std::string> names_;
    std::optional<WorkqueueWalk> walk_;
    Skeleton skeleton_;  // null: no probes are attached
    std::string limits_;
};

}  // namespace

std::unique_ptr<WorkMonitor> make_bpf_monitor() {
    return std::make_unique<BpfMonitor>();
}

}  // namespace wq
