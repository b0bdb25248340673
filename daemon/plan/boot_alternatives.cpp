// SPDX-License-Identifier: LGPL-2.1-or-later
//
// nvme_tcp.wq_unbound (drivers/nvme/host/tcp.c): the module makes nvme_tcp_wq unbound when it is loaded.
// Without it, the work of a connection is queued on one CPU, which the driver chose.
//
// no_read_workqueue and no_write_workqueue (drivers/md/dm-crypt.c, kcryptd_queue_crypt()): flags of a
// mapping, since Linux 5.9. A read is then decrypted where it completes. If that is a hard interrupt,
// decryption is not allowed there and moves to a soft interrupt of the same CPU. A write is encrypted by the
// task that submits it, and sent at once, without being sorted. Only an ioctl shows whether a mapping has
// these flags (in its table), so we always name them.
#include "plan/boot_alternatives.h"

namespace wq {
namespace {

Alternative nvme_tcp(const IoDevices& devices) {
    return {
        "nvme_tcp.wq_unbound=Y", devices.nvme_tcp,
        "the work of a connection no longer waits for the one CPU that the driver chose for it; affinity "
        "scopes and masks reach nvme_tcp_wq, and it becomes a target",
        "it leaves the caches of that CPU, and waits for the lock of a pool that other CPUs share",
        "on the kernel command line, or `options nvme_tcp wq_unbound=Y` in /etc/modprobe.d; read when the "
        "module is loaded"};
}

Alternative reads(const IoDevices& devices) {
    return {"no_read_workqueue", devices.crypt,
            "a read is decrypted where it completes: it waits for no kworker and no pool->lock, which shows "
            "most on fast disks",
            "the CPU that gets the disk's interrupts decrypts, in interrupt context; other tasks of that CPU "
            "wait, the work is not spread, and no scope affects it",
            "`no-read-workqueue` in crypttab(5), or `cryptsetup refresh --perf-no_read_workqueue`; "
            "`cryptsetup status` shows whether it is set"};
}

Alternative writes(const IoDevices& devices) {
    return {
        "no_write_workqueue", devices.crypt,
        "a write is encrypted by the task that submits it and sent at once: it waits for no kworker and no "
        "pool->lock",
        "one writer encrypts on one CPU, and so does writeback of a whole disk; writes are not sorted, "
        "which slows rotating disks down; no scope affects it",
        "`no-write-workqueue` in crypttab(5), or `cryptsetup refresh --perf-no_write_workqueue`; "
        "`cryptsetup status` shows whether it is set"};
}

}  // namespace

std::vector<Alternative> alternatives(const IoDevices& devices) {
    std::vector<Alternative> out;
    if (devices.nvme_tcp_unbound == false) out.push_back(nvme_tcp(devices));
    if (devices.crypt.empty()) return out;
    out.push_back(reads(devices));
    out.push_back(writes(devices));
    return out;
}

}  // namespace wq
