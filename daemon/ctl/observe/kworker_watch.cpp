// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/kworker_watch.h"

namespace wq::ctl {
namespace {

bool sleeps(const Kworker& one) {
    return one.busy && one.state == 'D';
}

}  // namespace

void KworkerWatch::add(const std::vector<Kworker>& reading) {
    readings_++;
    for (const Kworker& now : reading) {
        const auto [at, is_new] = seen_.try_emplace(now.pid);
        Seen& seen = at->second;
        const bool same = !is_new && seen.last.name == now.name && now.cpu_ns >= seen.last.cpu_ns;
        if (!same) seen = Seen{};
        // A kworker that is not in the previous readings has started since, so all of its CPU time counts.
        const bool counts = same || readings_ > 1;
        const std::uint64_t used = counts ? now.cpu_ns - (same ? seen.last.cpu_ns : 0) : 0;
        seen.use.pid = now.pid;
        seen.use.name = now.name;
        seen.use.work = now.work;
        seen.use.cpu_ns += used;
        if (used > 0) seen.use.by_work[now.work] += used;
        const bool slept_on = seen.readings == 0 || seen.last.runs == now.runs;
        seen.readings = sleeps(now) ? (slept_on ? seen.readings + 1 : 1) : 0;
        seen.last = now;
    }
}

std::vector<KworkerUse> KworkerWatch::uses() const {
    std::vector<KworkerUse> out;
    for (const auto& [pid, seen] : seen_) {
        const bool stuck = readings_ > 1 && seen.readings == readings_;
        if (seen.use.cpu_ns == 0 && !stuck) continue;
        out.push_back(seen.use);
        out.back().stuck = stuck;
    }
    return out;
}

}  // namespace wq::ctl
