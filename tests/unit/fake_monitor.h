// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bpf/work_monitor.h"
#include "bpf/work_sums.h"

namespace wq {

inline KernelWorkqueue workqueue(std::uint64_t address, const std::string& name, std::uint64_t started = 0) {
    KernelWorkqueue out;
    out.address = address;
    out.name = name;
    out.pools = address;
    out.managed = true;
    out.started = out.completed = started;
    return out;
}

// The times of a workqueue: ITEMS whose wait is in BUCKET, and if LOCK > 0 as many that waited LOCK ns each
// for the lock.
inline std::pair<std::uint64_t, WorkTimes> times(std::uint64_t address, std::uint32_t items, unsigned bucket,
                                                 std::uint64_t lock = 0) {
    WorkTimes out;
    out.queued = lock > 0 ? items : 0;
    out.lock_ns = items * lock;
    out.waited.resize((40 - kTimeBits + 1) << kTimeBits);
    out.waited.at(bucket) = items;
    return {address, out};
}

// Returns the samples of the test one after another. Error: after the last sample, or if failures_ has one.
class FakeMonitor : public WorkMonitor {
  public:
    Status attach(bool functions, bool kworkers) override {
        functions_ = functions;
        kworkers_ = kworkers;
        return attached_;
    }
    Result<std::vector<KernelWorkqueue>> list_on(const CpuSet& cpus) override {
        asked_ = cpus;
        return on_cpus_;
    }
    Result<WorkSample> sample() override {
        const auto failure = failures_.find(looks_++);
        if (failure != failures_.end()) {
            at_++;
            return fail("no luck", failure->second);
        }
        if (at_ >= samples_.size()) return fail("no more samples");
        return samples_[at_++];
    }
    [[nodiscard]] std::string limits() const override { return limits_; }

    std::vector<WorkSample> samples_;
    std::size_t at_ = 0;
    unsigned looks_ = 0;
    std::map<unsigned, int> failures_;  // number of the look -> errno
    Status attached_;
    std::string limits_;
    bool functions_ = false, kworkers_ = false;
    CpuSet asked_;
    Result<std::vector<KernelWorkqueue>> on_cpus_;
};

}  // namespace wq
