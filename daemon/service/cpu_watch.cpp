// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/cpu_watch.h"

#include <fcntl.h>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "machine/cpu_files.h"
#include "machine/host_facts.h"

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

HostnameWatch::~HostnameWatch() {
    ::sd_event_source_disable_unref(source_);
}

void HostnameWatch::start(sd_event* event, std::function<void()> woken) {
    woken_ = std::move(woken);
    file_ = Fd(::open(paths_.hostname().c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (file_) (void)::sd_event_add_io(event, &source_, file_.get(), 0, on_change, this);
    name_ = read_hostname(paths_);
}

std::optional<std::string> HostnameWatch::changed() {
    std::string now = read_hostname(paths_);
    if (now == std::exchange(name_, now)) return std::nullopt;
    return now;
}

int HostnameWatch::on_change(sd_event_source* /*source*/, int /*fd*/, std::uint32_t /*events*/, void* self) {
    static_cast<HostnameWatch*>(self)->woken_();
    return 0;
}

}  // namespace wq
