// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/inventory.h"

#include <syslog.h>

#include <utility>

#include "plan/pods.h"

namespace wq {
namespace {

constexpr unsigned kMostDoubts = 3;

}  // namespace

void Inventory::changed(Udev::Change change) {
    using Change = Udev::Change;
    if (change != Change::workqueue) stale_ = true;
    // The CPU may be offline again at the next look.
    if (change == Change::cpu_online || change == Change::lost) strict_in_doubt_ = true;
}

void Inventory::start_over() {
    stale_ = true;
    doubts_ = 0;
}

bool Inventory::look_at_topology() {
    if (!stale_) return false;
    stale_ = false;
    topology_reads_++;
    const auto now = edges_.read_topology();
    std::string why;
    if (now) {
        strict_in_doubt_ = strict_in_doubt_ || !last_online_.contains(now->online);
        if (last_online_.empty()) strict_in_doubt_ = false;  // the first look
        last_online_ = now->online;
        known_.see(*now);
        fingerprint_ = machine_fingerprint(kernel_, known_.topology());
        why = why_pods_unknown(known_.topology(), known_.cpus(), kernel_,
                               kernel_.cache_shard_size.value_or(kKernelShardSize));
        // Files that are read while a CPU comes or goes may disagree for a moment: the next ticks look again,
        // a few times.
        doubts_ = now->warnings.empty() ? 0 : doubts_ + 1;
        stale_ = doubts_ > 0 && doubts_ <= kMostDoubts;
    } else {
        stale_ = true;  // the next tick tries again
        why = "no topology: " + now.error().text;
    }
    if (why != pods_unknown_ && !why.empty())
        edges_.log.write({LOG_NOTICE, Event::pods_unknown,
                          "pods unknown: " + why + "; nothing new is written until they are known"});
    pods_unknown_ = std::move(why);
    return true;
}

// An answer of udev is valid until udev gives another one.
void Inventory::fill(Listed& item, Workqueue now) const {
    item.now = std::move(now);
    item.unread = false;
    if (item.ask_udev) {
        std::optional<bool> answer = false;
        if (item.now.kind != Kind::default_scope) answer = edges_.opted_out(item.now.name);
        if (answer) item.opted_out = answer;
        item.ask_udev = !answer;
    }
    if (item.opted_out.value_or(item.now.untouchable.empty()))
        item.now.untouchable = item.opted_out ? kOptedOutByUdev : kNotProcessedByUdev;
}

}  // namespace wq
