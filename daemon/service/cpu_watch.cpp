// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/cpu_watch.h"

#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "kernel/cpu_files.h"

namespace wq {
namespace {

constexpr std::int64_t kNoise = 100'000'000;  // ns, because two clocks are read one after the other

}  // namespace

void CpuWatch::start() {
    suspended_ = time_suspended();
    cpus_ = cpu_state(paths_);
}

bool CpuWatch::was_suspended() {
    const std::int64_t now = time_suspended();
    if (std::abs(now - suspended_) <= kNoise) return false;
    suspended_ = now;
    return true;
}

bool CpuWatch::changed() {
    std::string now = cpu_state(paths_);
    const bool other = now != cpus_;
    cpus_ = std::move(now);
    return other;
}

}  // namespace wq
