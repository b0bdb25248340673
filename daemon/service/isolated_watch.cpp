// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/isolated_watch.h"

#include <syslog.h>

#include <vector>

#include "kernel/bpf_errors.h"
#include "kernel/read_isolation.h"

namespace wq {
namespace {

constexpr unsigned kTicks = 4;  // from one sample to the next

}  // namespace

void IsolatedWatch::tick(WorkCounters& counters) {
    if (wait_ > 0) {
        wait_--;
        return;
    }
    wait_ = kTicks - 1;
    const CpuSet cpus = read_isolation(paths_).cpus();
    const auto started = cpus.empty() ? std::vector<StartedWork>{} : counters.started_on(cpus);
    if (started) items_.add(cpus, *started);
    if (!started && passes(started.error())) return;
    const std::string why = started ? "" : started.error().text;
    if (!why.empty() && why != error_)
        log_.write({LOG_NOTICE, Event::none, "no metric of work on isolated CPUs: " + why});
    error_ = why;
}

}  // namespace wq
