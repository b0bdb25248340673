// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/bpf_counters.h"

#include <bpf/bpf.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <vector>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/histogram.h"
#include "bpf/watched.h"
#include "counters.skel.h"
#include "kernel/bpf_errors.h"
#include "kernel/btf_types.h"
#include "model/workqueue.h"

namespace wq {
namespace {

constexpr unsigned kSlots = 2;
constexpr std::uint32_t kTags = 1023;  // a record of the kernel's side has ten bits for it; 0 is none

struct Destroy {
    void operator()(counters_bpf* skeleton) const { counters_bpf::destroy(skeleton); }
};
using Skeleton = std::unique_ptr<counters_bpf, Destroy>;

// A word that programs read while they run.
void set(std::uint32_t& word, std::uint32_t value) {
    std::atomic_ref(word).store(value, std::memory_order_seq_cst);
}

void set_watched(counters_bpf& skeleton, const CpuSet& cpus) {
    for (const unsigned cpu : cpus.cpus()) {
        if (cpu >= WQ_MOST_CPUS) break;
        skeleton.rodata->watched_cpus[cpu / 64] |= std::uint64_t{1} << cpu % 64;
        skeleton.rodata->watching = 1;
    }
    if (!skeleton.rodata->watching) bpf_map__set_max_entries(skeleton.maps.watched, 1);  // never used
}

Result<Skeleton> loaded(std::uint64_t target, bool with_entry, const CpuSet& watched) {
    const BpfErrors errors;
    Skeleton skeleton(counters_bpf::open());
    if (!skeleton) return errors.fail("loading the counters", errno);
    set_watched(*skeleton, watched);
    skeleton->rodata->target = target;
    skeleton->rodata->entry_seen = with_entry;
    skeleton->rodata->preemptible = kernel_offers("bpf_preempt_disable");
    bpf_program__set_autoload(skeleton->progs.wqt_enter, with_entry);
    if (int code = counters_bpf::load(skeleton.get())) return errors.fail("loading the counters", code);
    if (int code = counters_bpf::attach(skeleton.get())) return errors.fail("attaching the counters", code);
    return skeleton;
}

class BpfCounters : public WorkCounters {
  public:
    Status attach(const std::string& target) override;
    Status begin(unsigned slot) override;
    void pause() override;
    Result<WorkCount> read(unsigned slot) override;
    void detach() override;
    void watch(const CpuSet& cpus) override;
    Watched watched() override;
    ~BpfCounters() override { BpfCounters::detach(); }
    Result<std::map<std::string, std::uint64_t>> traffic() override;
    [[nodiscard]] std::string limits() const override { return limits_; }

  private:
    [[nodiscard]] Status check(unsigned slot) const;
    void add_watched(WatchedSums& sums) const;

    Skeleton skeleton_;
    std::string limits_;
    std::uint32_t tag_ = 0;  // of the latest window
    std::array<bool, kSlots> begun_{};
    CpuSet to_watch_;
    WatchedSums watched_;  // of past attachments
    std::chrono::steady_clock::time_point attached_at_;
};

Status BpfCounters::attach(const std::string& target) {
    detach();
    limits_.clear();
    begun_ = {};
    std::uint64_t address = 0;
    if (target != kDefaultTarget) {
        const auto all = list_kernel_workqueues();
        if (!all) return tl::unexpected(all.error());
        const auto found = find_workqueue(*all, target);
        if (!found) return tl::unexpected(found.error());
        address = found->address;
    }
    auto skeleton = loaded(address, true, to_watch_);
    if (!skeleton && passes(skeleton.error())) return tl::unexpected(skeleton.error());
    if (!skeleton) {  // some kernels refuse to attach to a function
        skeleton = loaded(address, false, to_watch_);
        if (!skeleton) return tl::unexpected(skeleton.error());
        limits_ =
            "this kernel refuses fentry: waiting for pool->lock is not seen, nor part of latency and tail";
    }
    skeleton_ = std::move(*skeleton);
    attached_at_ = std::chrono::steady_clock::now();
    return {};
}

// What ran on other CPUs says nothing of these.
void BpfCounters::watch(const CpuSet& cpus) {
    if (cpus == to_watch_) return;
    detach();
    watched_ = {};
    to_watch_ = cpus;
}

void BpfCounters::detach() {
    add_watched(watched_);
    skeleton_.reset();
}

// What the kernel's map has by now. Of an entry that comes or goes meanwhile nothing is promised: none go.
void BpfCounters::add_watched(WatchedSums& sums) const {
    if (!skeleton_ || !skeleton_->rodata->watching) return;
    const std::chrono::duration<double> attached = std::chrono::steady_clock::now() - attached_at_;
    sums.add_seconds(attached.count());
    sums.add_lost(skeleton_->bss->watched_lost);
    wq_watch_key key{};
    const wq_watch_key* before = nullptr;
    while (bpf_map__get_next_key(skeleton_->maps.watched, before, &key, sizeof(key)) == 0) {
        wq_watched found{};
        before = &key;
        if (bpf_map__lookup_elem(skeleton_->maps.watched, &key, sizeof(key), &found, sizeof(found), 0) == 0)
            sums.add({sysfs_name(key.workqueue), key.per_cpu != 0, found.function, found.items});
    }
}

Watched BpfCounters::watched() {
    WatchedSums sums = watched_;
    add_watched(sums);
    return sums.sums();
}

Status BpfCounters::check(unsigned slot) const {
    if (slot >= kSlots) return fail("there is no slot " + std::to_string(slot), EINVAL);
    if (!skeleton_) return fail("the counters are not attached", ENOTCONN);
    return {};
}

std::vector<wq_slot> room_for_all_cpus() {
    static_assert(sizeof(wq_slot) % 8 == 0);  // else the kernel pads what it copies
    return std::vector<wq_slot>(static_cast<std::size_t>(std::max(libbpf_num_possible_cpus(), 1)));
}

Status BpfCounters::begin(unsigned slot) {
    if (auto ok = check(slot); !ok) return ok;
    // First no record may belong to the slot, then it is emptied, then it is the next window's.
    set(skeleton_->bss->now, 0);
    set(skeleton_->bss->tags[slot], 0);
    const BpfErrors errors;
    auto empty = room_for_all_cpus();
    if (int code = bpf_map__update_elem(skeleton_->maps.slots, &slot, sizeof(slot), empty.data(),
                                        empty.size() * sizeof(wq_slot), BPF_ANY))
        return errors.fail("emptying a window", code);
    tag_ = tag_ % kTags + 1;
    begun_[slot] = true;
    set(skeleton_->bss->tags[slot], tag_);
    set(skeleton_->bss->now, tag_ << 1 | slot);
    return {};
}

void BpfCounters::pause() {
    if (skeleton_) set(skeleton_->bss->now, 0);
}

WorkCount summed(const std::vector<wq_slot>& cpus) {
    Histogram waited;
    WorkCount count;
    std::uint64_t queued = 0;
    double latency = 0, exec = 0, lock = 0;
    for (const auto& cpu : cpus) {
        queued += cpu.queued;
        count.stuck += cpu.stuck;
        count.lost += cpu.lost;
        lock += static_cast<double>(cpu.lock);
        latency += static_cast<double>(cpu.latency);
        exec += static_cast<double>(cpu.exec);
        for (unsigned bucket = 0; bucket < WQ_BUCKETS; bucket++) waited.add(bucket, cpu.waited[bucket]);
    }
    count.items = waited.items();
    const std::uint64_t accounted = count.items + count.lost;
    count.unfinished = queued > accounted ? queued - accounted : 0;
    if (queued) count.lock = lock / static_cast<double>(queued);
    if (!count.items) return count;
    count.latency = latency / static_cast<double>(count.items);
    count.exec = exec / static_cast<double>(count.items);
    count.tail = waited.percentile(0.99);
    return count;
}

Result<WorkCount> BpfCounters::read(unsigned slot) {
    if (auto ok = check(slot); !ok) return tl::unexpected(ok.error());
    if (!begun_[slot]) return fail("no window has begun in slot " + std::to_string(slot), EINVAL);
    const BpfErrors errors;
    auto cpus = room_for_all_cpus();
    if (int code = bpf_map__lookup_elem(skeleton_->maps.slots, &slot, sizeof(slot), cpus.data(),
                                        cpus.size() * sizeof(wq_slot), 0))
        return errors.fail("reading a window", code);
    return summed(cpus);
}

Result<std::map<std::string, std::uint64_t>> BpfCounters::traffic() {
    const auto all = list_kernel_workqueues();
    if (!all) return tl::unexpected(all.error());
    std::map<std::string, std::uint64_t> started{{kDefaultTarget, 0}};
    for (const auto& one : *all) {
        if (one.in_sysfs) started[one.name] = one.started;
        if (one.follows_default) started[kDefaultTarget] += one.started;
    }
    return started;
}

}  // namespace

std::unique_ptr<WorkCounters> make_bpf_counters() {
    return std::make_unique<BpfCounters>();
}

}  // namespace wq
