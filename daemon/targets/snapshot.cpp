// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/snapshot.h"

#include <syslog.h>

#include "plan/pods.h"

namespace wq {

void Snapshot::changed(Udev::Change change) {
    using Change = Udev::Change;
    if (change != Change::workqueue) stale = true;
    // The CPU may be offline again at the next look.
    if (change == Change::cpu_online || change == Change::lost) strict_in_doubt = true;
}

bool Snapshot::look_at_topology() {
    if (!stale) return false;
    stale = false;
    topology_reads++;
    const auto now = read_topology_();
    std::string why;
    if (now) {
        strict_in_doubt = strict_in_doubt || !online.contains(now->online);
        if (online.empty()) strict_in_doubt = false;  // the first look
        online = now->online;
        known_.see(*now);
        fingerprint = machine_fingerprint(kernel, known_.topology());
        why = why_pods_unknown(known_.topology(), known_.cpus(), kernel,
                               kernel.cache_shard_size.value_or(kKernelShardSize));
    } else {
        stale = true;  // the next tick tries again
        why = "no topology: " + now.error().text;
    }
    if (why != pods_unknown && !why.empty())
        log_.write({LOG_NOTICE, Event::pods_unknown,
                    "pods unknown: " + why + "; nothing new is written until they are known"});
    pods_unknown = std::move(why);
    return true;
}

}  // namespace wq
