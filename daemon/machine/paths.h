// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq {

// The paths of files that more than one part reads, below ROOT: "" is this machine, a directory is a tree.
struct Paths {
    std::string root;

    [[nodiscard]] std::string workqueues() const { return root + "/sys/devices/virtual/workqueue"; }
    [[nodiscard]] std::string parameters() const { return root + "/sys/module/workqueue/parameters"; }
    [[nodiscard]] std::string cpus() const { return root + "/sys/devices/system/cpu"; }
    [[nodiscard]] std::string cgroups() const { return root + "/sys/fs/cgroup"; }
    // The kernel's own types, as BTF.
    [[nodiscard]] std::string btf() const { return root + "/sys/kernel/btf/vmlinux"; }
    [[nodiscard]] std::string proc() const { return root + "/proc"; }
    [[nodiscard]] std::string cmdline() const { return root + "/proc/cmdline"; }
    [[nodiscard]] std::string osrelease() const { return root + "/proc/sys/kernel/osrelease"; }
    // RESOURCE: cpu, io or memory.
    [[nodiscard]] std::string pressure(const std::string& resource) const {
        return root + "/proc/pressure/" + resource;
    }
    [[nodiscard]] std::string sched_ext() const { return root + "/sys/kernel/sched_ext"; }

    // Our own files.
    // PATH: absolute, as a user names it.
    [[nodiscard]] std::string of_user(const std::string& path) const { return root + path; }
    [[nodiscard]] std::string disabled() const { return root + "/etc/wq-tuned/disabled"; }
    [[nodiscard]] std::string run() const { return root + "/run/wq-tuned"; }
    [[nodiscard]] std::string first_cpus() const { return run() + "/first-cpus"; }  // machine/topology.h
    [[nodiscard]] std::string owned() const { return run() + "/owned.json"; }       // owned/owned.h
    // What the daemon knows, for everybody; see service/status.h.
    [[nodiscard]] std::string status() const { return run() + "/status.json"; }
    // The coins of the slot in progress, see experiment/slot.h.
    [[nodiscard]] std::string slot() const { return run() + "/slot.json"; }
    // What the ledger's file does not have yet.
    [[nodiscard]] std::string pairs() const { return run() + "/pairs.json"; }
    // Every comparison that this host made, see evidence/ledger.h.
    [[nodiscard]] std::string ledger() const { return root + "/var/lib/wq-tuned/ledger.json"; }
    // Exists while experiments are paused.
    [[nodiscard]] std::string paused() const { return root + "/var/lib/wq-tuned/paused"; }
    [[nodiscard]] std::string verdicts() const { return root + "/var/lib/wq-tuned/verdicts.log"; }
    // Contains the path of the metrics textfile that the policy named.
    [[nodiscard]] std::string textfile_record() const { return run() + "/textfile"; }
    // What `ab` or `bench` must put back; see owned/owned.h.
    [[nodiscard]] std::string lab() const { return run() + "/lab.json"; }
    [[nodiscard]] std::string lock() const { return run() + "/lock"; }
};

}  // namespace wq
