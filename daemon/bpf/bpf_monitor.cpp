// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_monitor.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <set>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/skeleton.h"
#include "top.skel.h"

namespace wq {
namespace {

using Skeleton = OwnedSkeleton<top_bpf>;

Result<Skeleton> loaded_for(Seen seen, bool functions) {
    return loaded<top_bpf>("loading the programs that watch work", [&](top_bpf& object) {
        object.rodata->functions_too = functions;
        object.rodata->preemptible = name_calls(object.obj);
        object.rodata->exit_seen = seen.exit;
        bpf_program__set_autoload(object.progs.wqt_top_enter, seen.entry);
        bpf_program__set_autoload(object.progs.wqt_top_leave, seen.exit);
        bpf_program__set_autoload(object.progs.wqt_top_end, functions);
        bpf_program__set_autoload(object.progs.wqt_top_tick, seen.tick);
        if (!functions) bpf_map__set_max_entries(object.maps.functions, 1);  // not used
        if (!seen.tick) bpf_map__set_max_entries(object.maps.ran, 1);
    });
}

// Attaches what was loaded, in the reverse of the order in which an item passes the places, so that an item
// seen at one place is also seen at the next.
Status attach_all(top_bpf& skeleton) {
    auto& programs = skeleton.progs;
    auto& links = skeleton.links;
    const BpfErrors errors;
    for (const auto& [program, link] : {std::pair{programs.wqt_top_end, &links.wqt_top_end},
                                        {programs.wqt_top_start, &links.wqt_top_start},
                                        {programs.wqt_top_leave, &links.wqt_top_leave},
                                        {programs.wqt_top_queue, &links.wqt_top_queue},
                                        {programs.wqt_top_enter, &links.wqt_top_enter},
                                        {programs.wqt_top_tick, &links.wqt_top_tick}}) {
        if (!bpf_program__autoload(program)) continue;
        *link = bpf_program__attach(program);
        if (*link == nullptr) return errors.fail("attaching the programs that watch work", errno);
    }
    return {};
}

// The length of a scheduler tick, which is the resolution of the kernel's coarse clocks.
std::uint64_t tick_ns() {
    timespec length{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &length);
    return static_cast<std::uint64_t>(length.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(length.tv_nsec);
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

class BpfMonitor : public WorkMonitor {
  public:
    Status attach(bool functions, bool kworkers) override {
        skeleton_.reset();
        limits_.clear();
        if (auto there = walk_.load(); !there) return there;
        auto skeleton = attach_seen(
            {.tick = kworkers},
            [&](Seen now) -> Result<Skeleton> {
                auto out = loaded_for(now, functions);
                if (!out) return out;
                if (const auto done = attach_all(**out); !done) return tl::unexpected(done.error());
                return out;
            },
            seen_);
        if (!skeleton) return tl::unexpected(skeleton.error());
        const std::string enqueue = "the time in queue_work()";
        if (!seen_.entry)
            limits_ = "the wait for pool->lock, " + enqueue + " (this kernel refuses fentry)";
        else if (!seen_.exit)
            limits_ = enqueue + " (this kernel refuses fexit)";
        if (kworkers && !seen_.tick) limits_ = "which kworker runs which function, " + limits_;
        skeleton_ = std::move(*skeleton);
        return {};
    }

    Result<WorkSample> sample() override {
        WorkSample out;
        if (skeleton_) read_probes(out);
        auto there = walk_.list();
        if (!there) return tl::unexpected(there.error());
        if (skeleton_) forget_gone(*there, out);
        out.workqueues = std::move(*there);
        out.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return out;
    }

    Result<std::vector<KernelWorkqueue>> list_on(const CpuSet& cpus) override { return walk_.list_on(cpus); }

    [[nodiscard]] std::string limits() const override { return limits_; }

  private:
    void read_probes(WorkSample& out) const {
        out.lost = skeleton_->bss->lost;
        for_each<std::uint64_t, wq_times>(
            skeleton_->maps.times,
            [&](std::uint64_t address, const wq_times& one) { out.times[address] = summed(one); });
        for_each<wq_function_key, wq_function>(
            skeleton_->maps.functions, [&](const wq_function_key& key, const wq_function& one) {
                out.functions[{key.workqueue, key.function}] = {one.function, one.items, one.busy};
            });
        if (!seen_.tick) return;
        out.ran.emplace();
        out.lost_ticks = skeleton_->bss->lost_ticks;
        for_each<wq_ran_key, wq_ran>(skeleton_->maps.ran, [&](const wq_ran_key& key, const wq_ran& one) {
            out.ran->push_back({key.workqueue, one.function, static_cast<int>(key.pid), one.comm,
                                one.ticks * tick_ns(), one.longest});
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

    WorkqueueWalk walk_;
    Skeleton skeleton_;  // null: no probes are attached
    Seen seen_;
    std::string limits_;
};

}  // namespace

std::unique_ptr<WorkMonitor> make_bpf_monitor() {
    return std::make_unique<BpfMonitor>();
}

}  // namespace wq
