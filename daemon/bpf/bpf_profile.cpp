// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_monitor.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <utility>

#include "bpf/bpf_shared.h"
#include "bpf/skeleton.h"
#include "machine/kernel_info.h"
#include "profile.skel.h"

namespace wq {
namespace {

using Skeleton = OwnedSkeleton<profile_bpf>;

// The length of a scheduler tick, which is the resolution of the kernel's coarse clocks.
std::uint64_t tick_ns() {
    timespec length{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &length);
    return static_cast<std::uint64_t>(length.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(length.tv_nsec);
}

Status attach_all(profile_bpf& skeleton) {
    auto& programs = skeleton.progs;
    auto& links = skeleton.links;
    // The timer program is attached before the queue program. Otherwise an item that a timer queued could be
    // counted as queued by a task.
    return attach_in_order("attaching the programs that profile kworkers",
                           {{programs.wqt_profile_timer, &links.wqt_profile_timer},
                            {programs.wqt_profile_queue, &links.wqt_profile_queue},
                            {programs.wqt_profile_start, &links.wqt_profile_start},
                            {programs.wqt_profile_tick, &links.wqt_profile_tick}});
}

// FENTRY: also loads the two fentry programs, which some kernels refuse.
Result<Skeleton> attached(const CpuSet& isolated, bool fentry) {
    auto skeleton =
        loaded<profile_bpf>("loading the programs that profile kworkers", [&](profile_bpf& object) {
            const bool watching = set_cpus(object.rodata->isolated_cpus, isolated);
            object.rodata->preemptible = kernel_offers("bpf_preempt_disable");
            bpf_program__set_autoload(object.progs.wqt_profile_tick, fentry);
            bpf_program__set_autoload(object.progs.wqt_profile_timer, fentry && watching);
            bpf_program__set_autoload(object.progs.wqt_profile_start, watching);
            bpf_program__set_autoload(object.progs.wqt_profile_queue, watching);
            if (!watching) bpf_map__set_max_entries(object.maps.isolated, 1);  // not used
        });
    if (!skeleton) return skeleton;
    if (auto done = attach_all(**skeleton); !done) return tl::unexpected(done.error());
    return skeleton;
}

std::vector<IsolatedWork> isolated_work(const bpf_map* map) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, IsolatedWork> by_function;
    for_each<wq_isolated_key, wq_isolated>(map, [&](const wq_isolated_key& key, const wq_isolated& one) {
        IsolatedWork& work = by_function[{key.workqueue, key.function}];
        work.workqueue = key.workqueue;
        work.function = one.function;
        if (key.event == WQ_ISOLATED_STARTED)
            work.items += one.items;
        else
            work.origins.push_back({key.event == WQ_ISOLATED_BY_TIMER, key.cpu, key.comm, one.items});
    });
    std::vector<IsolatedWork> out;
    for (auto& [key, work] : by_function) {
        std::ranges::stable_sort(work.origins, std::ranges::greater{}, &WorkOrigin::items);
        out.push_back(std::move(work));
    }
    return out;
}

class BpfProfile : public WorkProfile {
  public:
    Status attach(const CpuSet& isolated) override {
        skeleton_.reset();
        limits_.clear();
        auto all = attached(isolated, true);
        if (!all && !passes(all.error()) && !isolated.empty()) {
            limits_ = all.error().text;
            all = attached(isolated, false);
        }
        if (!all) return tl::unexpected(all.error());
        skeleton_ = std::move(*all);
        return {};
    }

    Result<ProfileSample> read() override {
        if (!skeleton_) return fail("nothing is attached", ENOTCONN);
        ProfileSample out;
        const std::uint64_t tick = tick_ns();
        for_each<wq_ran_key, wq_ran>(skeleton_->maps.ran, [&](const wq_ran_key& key, const wq_ran& one) {
            out.ran.push_back({key.workqueue, one.function, static_cast<int>(key.pid), one.comm,
                               one.ticks * tick, one.longest});
        });
        out.isolated = isolated_work(skeleton_->maps.isolated);
        out.lost_ticks = skeleton_->bss->lost_ticks;
        out.lost_items = skeleton_->bss->lost_items;
        return out;
    }
    [[nodiscard]] std::string limits() const override { return limits_; }

  private:
    Skeleton skeleton_;
    std::string limits_;
};

}  // namespace

std::unique_ptr<WorkProfile> make_bpf_profile() {
    return std::make_unique<BpfProfile>();
}

}  // namespace wq
