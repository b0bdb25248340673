// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/skeleton.h"
#include "bpf/work_sums.h"
#include "counters.skel.h"
#include "machine/workqueue.h"

namespace wq {
namespace {

constexpr unsigned kSlots = 2;
constexpr unsigned kTargets = WorkCounters::kMostTargets;
constexpr std::uint32_t kNumbers = 63;      // window numbers: a tag has six bits for one; 0 means none
constexpr std::uint32_t kMostEach = 65535;  // the largest N of "one of N items"

using Skeleton = OwnedSkeleton<counters_bpf>;

// Sets a word that BPF programs may read at the same time.
void set(std::uint32_t& word, std::uint32_t value) {
    std::atomic_ref(word).store(value, std::memory_order_seq_cst);
}

Result<Skeleton> attached(Seen seen, bool tails) {
    auto skeleton = loaded<counters_bpf>("loading the counters", [&](counters_bpf& object) {
        object.rodata->entry_seen = seen.entry;
        object.rodata->exit_seen = seen.exit;
        object.rodata->tails = tails;
        if (!tails) bpf_map__set_max_entries(object.maps.histograms, 1);    // never used
        if (!seen.exit) bpf_map__set_max_entries(object.maps.enqueued, 1);  // never used
        object.rodata->preemptible = name_calls(object.obj);
        bpf_program__set_autoload(object.progs.wqt_enter, seen.entry);
        bpf_program__set_autoload(object.progs.wqt_leave, seen.exit);
        for (auto& window : object.bss->windows) window.n = 1;
    });
    if (!skeleton) return skeleton;
    const BpfErrors errors;
    if (int code = counters_bpf::attach(skeleton->get())) return errors.fail("attaching the counters", code);
    return skeleton;
}

std::string limits_of(Seen seen, Wanted wanted) {
    if (!seen.entry)
        return fmt::format(
            "this kernel refuses fentry: waiting for pool->lock is not seen, nor part of latency and tail{}",
            wanted.enqueue ? ", nor is enqueue" : "");
    return wanted.enqueue && !seen.exit ? "this kernel refuses fexit: enqueue is not seen" : "";
}

// Number of items of target T that were queued in windows; wraps around.
Result<std::uint32_t> queued(const counters_bpf& kernel, unsigned t) {
    static_assert(sizeof(wq_cpu) % 8 == 0);  // otherwise the kernel pads each CPU's copy
    const BpfErrors errors;
    const std::uint32_t zero = 0;
    std::vector<wq_cpu> cpus(static_cast<std::size_t>(std::max(libbpf_num_possible_cpus(), 1)));
    if (int code = bpf_map__lookup_elem(kernel.maps.cpus, &zero, sizeof(zero), cpus.data(),
                                        cpus.size() * sizeof(wq_cpu), 0))
        return errors.fail("reading a window", code);
    std::uint32_t sum = 0;
    for (const auto& cpu : cpus) sum += cpu.targets[t].queued;
    return sum;
}

// Sets the stripes of target T in MAP to zero.
template <class Value>
Status empty_stripes(const bpf_map* map, unsigned t) {
    const BpfErrors errors;
    const Value none{};
    for (std::uint32_t key = t * WQ_STRIPES; key < (t + 1) * WQ_STRIPES; key++)
        if (int code = bpf_map__update_elem(map, &key, sizeof(key), &none, sizeof(none), BPF_ANY))
            return errors.fail("emptying a window", code);
    return {};
}

Status empty(counters_bpf& kernel, unsigned t) {
    std::ranges::fill(kernel.bss->sums[t], wq_sums{});
    Status done;
    if (kernel.rodata->tails) done = empty_stripes<wq_histogram>(kernel.maps.histograms, t);
    if (done && kernel.rodata->exit_seen) done = empty_stripes<wq_enqueued>(kernel.maps.enqueued, t);
    return done;
}

// Calls USE for each stripe of target T in MAP.
template <class Value, class Use>
Status for_stripes(const bpf_map* map, unsigned t, Use use) {
    const BpfErrors errors;
    Value value;
    for (std::uint32_t key = t * WQ_STRIPES; key < (t + 1) * WQ_STRIPES; key++) {
        if (int code = bpf_map__lookup_elem(map, &key, sizeof(key), &value, sizeof(value), 0))
            return errors.fail("reading a window", code);
        use(value);
    }
    return {};
}

// The counts of target T's window, in which QUEUED items were queued.
Result<WorkCount> sums_of(const counters_bpf& kernel, unsigned t, std::uint32_t queued) {
    wq_sums sum{};
    for (const wq_sums& one : kernel.bss->sums[t]) {
        sum.timed += one.timed;
        sum.lock += one.lock;
        sum.latency += one.latency;
        sum.exec += one.exec;
        sum.stuck += one.stuck;
        sum.ended += one.ended;
        sum.pending += one.pending;
        sum.running += one.running;
    }
    Histogram waited;
    wq_enqueued enqueued{};
    Status read;
    if (kernel.rodata->tails)
        read = for_stripes<wq_histogram>(kernel.maps.histograms, t, [&](const wq_histogram& one) {
            for (unsigned i = 0; i < WQ_BUCKETS; i++) waited.add(i, one.waited[i]);
        });
    if (read && kernel.rodata->exit_seen)
        read = for_stripes<wq_enqueued>(kernel.maps.enqueued, t, [&](const wq_enqueued& one) {
            enqueued.ns += one.ns;
            for (unsigned i = 0; i < WQ_TIME_BUCKETS; i++) enqueued.items[i] += one.items[i];
        });
    if (!read) return tl::unexpected(read.error());
    WorkCount count = count_of(queued, sum, waited);
    set_enqueued(count, enqueued);
    if (!kernel.rodata->entry_seen) count.lock = WorkCount::kUnknown;
    return count;
}

struct Window {
    std::uint32_t queued_before = 0;
    Result<KernelLook> begin, end;
    std::optional<WorkCount> count;  // set when the window is settled
};

struct Counted {
    std::uint64_t address = 0;  // 0: all others that follow the default scope
    unsigned every = 1;
    std::optional<unsigned> live;  // the slot of the window to which items may still add
    bool open = false;             // newly queued items belong to that window
    std::array<std::optional<Window>, kSlots> windows;
};

WorkCounters::Traffic& operator+=(WorkCounters::Traffic& sum, const KernelWorkqueue& one) {
    sum.started += one.started;
    sum.completed += one.completed;
    sum.cpu_ns += one.cpu_time_us * 1000;
    return sum;
}

class BpfCounters : public WorkCounters {
  public:
    explicit BpfCounters(std::string refusal) : refusal_(std::move(refusal)), limits_(refusal_) {}

    Status attach(const std::vector<std::string>& targets, Wanted wanted) override {
        auto found = find(targets);
        if (!found) {
            detach();
            return tl::unexpected(found.error());
        }
        if (!skeleton_ || wanted_ != wanted) {
            detach();
            limits_.clear();
            if (auto done = load(wanted); !done) return done;
        }
        retarget(std::move(*found));
        return {};
    }

    void sample(unsigned t, unsigned n) override {
        if (t < targets_.size()) targets_[t].every = std::clamp(n, 1U, kMostEach);
    }

    Status begin(unsigned t, unsigned slot) override {
        if (auto ok = check(t, slot); !ok) return ok;
        if (auto settled = settle(t); !settled) return settled;
        if (auto emptied = empty(*skeleton_, t); !emptied) return emptied;
        const auto before = queued(*skeleton_, t);
        if (!before) return tl::unexpected(before.error());
        Counted& target = targets_[t];
        target.windows[slot] = Window{*before, look(), fail("it has not ended"), {}};
        target.live = slot;
        target.open = true;
        numbers_[t] = numbers_[t] % kNumbers + 1;
        const std::uint32_t tag = numbers_[t] * WQ_TARGETS + t;
        auto& window = skeleton_->bss->windows[t];
        window.since = static_cast<std::uint64_t>(
            std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
        window.n = target.every;
        set(window.live, tag);
        set(window.open, tag);
        return {};
    }

    void pause(unsigned t) override {
        if (!check(t, 0) || !targets_[t].open) return;
        set(skeleton_->bss->windows[t].open, 0);
        targets_[t].open = false;
        targets_[t].windows[*targets_[t].live]->end = look();
    }

    Result<WorkCount> read(unsigned t, unsigned slot) override {
        if (auto ok = check(t, slot); !ok) return tl::unexpected(ok.error());
        if (targets_[t].live == slot)
            if (auto settled = settle(t); !settled) return tl::unexpected(settled.error());
        const auto& window = targets_[t].windows[slot];
        if (!window || !window->count)
            return fail(fmt::format("no window has begun in slot {}", slot), EINVAL);
        return *window->count;
    }

    void detach() override {
        skeleton_.reset();
        targets_.clear();
    }

    Result<std::map<std::string, Traffic>> traffic() override {
        const auto all = list();
        if (!all) return tl::unexpected(all.error());
        std::map<std::string, Traffic> out{{kDefaultTarget, {}}};
        for (const auto& one : *all) {
            if (one.in_sysfs && one.unbound) out[one.name] += one;
            if (one.follows_default) out[kDefaultTarget] += one;
        }
        return out;
    }

    Result<Traffic> traffic_of(unsigned t) override {
        if (auto ok = check(t, 0); !ok) return tl::unexpected(ok.error());
        const auto seen = look();
        if (!seen) return tl::unexpected(seen.error());
        const auto& counted = seen->of[t];
        return Traffic{counted.started, counted.completed, counted.cpu_time_us * 1000};
    }

    Result<std::vector<KernelWorkqueue>> health() override {
        if (!refusal_.empty()) return refused();
        return walk_.health();
    }

    [[nodiscard]] std::string limits() const override { return limits_; }

  private:
    [[nodiscard]] tl::unexpected<Error> refused() const { return fail(refusal_, EOPNOTSUPP); }

    Result<std::vector<KernelWorkqueue>> list() {
        if (!refusal_.empty()) return refused();
        return walk_.list(true);
    }

    Result<std::vector<Counted>> find(const std::vector<std::string>& targets) {
        if (targets.empty() || targets.size() > kTargets)
            return fail(fmt::format("{} targets at once; allowed are 1 to {}", targets.size(), kTargets),
                        EINVAL);
        const auto all = list();
        if (!all) return tl::unexpected(all.error());
        std::vector<Counted> out;
        for (const auto& target : targets) {
            Counted& counted = out.emplace_back();
            if (target == kDefaultTarget) continue;
            const auto found = find_workqueue(*all, target);
            if (!found) return tl::unexpected(found.error());
            counted.address = found->address;
        }
        return out;
    }

    Status load(Wanted wanted) {
        const Seen all{can_see_.entry, can_see_.exit && wanted.enqueue};
        Seen seen;
        auto skeleton = attach_seen(
            all, [&](Seen now) { return attached(now, wanted.tails); }, seen);
        if (!skeleton) return tl::unexpected(skeleton.error());
        if (seen.entry != all.entry) can_see_ = {false, false};
        if (seen.exit != all.exit) can_see_.exit = false;
        limits_ = limits_of(seen, wanted);
        skeleton_ = std::move(*skeleton);
        wanted_ = wanted;
        return {};
    }

    // The programs stay attached, because loading takes long. They count no items while the targets change.
    void retarget(std::vector<Counted> targets) {
        auto& kernel = *skeleton_->bss;
        auto& default_target = skeleton_->data->default_target;
        set(kernel.nr_targets, 0);
        std::atomic_ref(default_target).store(-1);
        for (auto& window : kernel.windows) {
            set(window.open, 0);
            set(window.live, 0);
        }
        std::ranges::fill(kernel.targets, 0);
        targets_ = std::move(targets);
        for (unsigned t = 0; t < targets_.size(); t++) {
            kernel.targets[t] = targets_[t].address;
            if (targets_[t].address == 0) std::atomic_ref(default_target).store(static_cast<int>(t));
        }
        set(kernel.nr_targets, static_cast<std::uint32_t>(targets_.size()));
    }

    [[nodiscard]] Status check(unsigned t, unsigned slot) const {
        if (slot >= kSlots) return fail(fmt::format("there is no slot {}", slot), EINVAL);
        if (!skeleton_) return fail("the counters are not attached", ENOTCONN);
        if (t >= targets_.size()) return fail(fmt::format("there is no target {}", t), EINVAL);
        return {};
    }

    // Reads all targets, because this takes no longer than one.
    Result<KernelLook> look() {
        std::vector<std::uint64_t> addresses;
        for (const auto& target : targets_) addresses.push_back(target.address);
        return walk_.look(addresses);
    }

    // Ends the window to which items of target T may still add, if there is one.
    Status settle(unsigned t) {
        Counted& target = targets_[t];
        if (!target.live) return {};
        pause(t);
        Window& window = *target.windows[*target.live];
        target.live.reset();
        skeleton_->bss->settling = t;
        if (auto done = run_once(skeleton_->progs.wqt_settle, "ending a window"); !done) return done;
        const auto after = queued(*skeleton_, t);
        if (!after) return tl::unexpected(after.error());
        auto count = sums_of(*skeleton_, t, *after - window.queued_before);
        if (!count) return tl::unexpected(count.error());
        if (window.begin && window.end) add_statistics(*count, *window.begin, *window.end, t);
        window.count = *count;
        return {};
    }

    std::string refusal_;  // why nothing may be counted; "" otherwise
    WorkqueueWalk walk_{true};
    Skeleton skeleton_;
    Wanted wanted_;
    Seen can_see_;  // on this kernel, as far as it was tried
    std::vector<Counted> targets_;
    std::array<std::uint32_t, kTargets> numbers_{};  // number of each target's latest window
    std::string limits_;
};

}  // namespace

std::unique_ptr<WorkCounters> make_bpf_counters(std::string refusal) {
    return std::make_unique<BpfCounters>(std::move(refusal));
}

}  // namespace wq
