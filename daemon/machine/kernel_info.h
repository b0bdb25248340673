// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "machine/paths.h"
#include "machine/workqueue.h"

namespace wq {

// One pod as the running kernel made it at boot (kernel/workqueue.c, wq_pod_types): possible CPUs, including
// offline ones.
struct KernelPod {
    CpuSet cpus;
    int node = -1;  // NUMA node; -1 if the kernel gives none
    friend bool operator==(const KernelPod&, const KernelPod&) = default;
};

// All pods, in the kernel's order, for each scope that this kernel has. The pods of a scope are disjoint.
using KernelPods = std::map<Scope, std::vector<KernelPod>>;

// Capabilities of the running kernel, found by feature detection: distributions backport, so versions prove
// nothing.
struct KernelInfo {
    std::string release;                       // empty if the source is not a running kernel
    std::vector<Scope> scopes;                 // finest first; empty before 6.6, without scopes
    std::optional<unsigned> cache_shard_size;  // cores; empty if the kernel has no cache_shard
    bool default_on_cmdline = false;           // workqueue.default_affinity_scope= is given
    bool default_writable = true;              // the module parameter default_affinity_scope
    bool switched_off = false;                 // wq_tuned=off
    std::string cpus_held_back;                // boot options that kept CPUs offline ("nosmt and maxcpus=4")
    std::optional<KernelPods> pods;  // as read from the running kernel; empty if they cannot be read
    std::string pods_unread;         // why they cannot be read; "" if nobody tried

    [[nodiscard]] bool has(Scope scope) const;
    // The scope that `default` means on a freshly booted kernel.
    [[nodiscard]] Scope default_scope() const {
        return has(Scope::cache_shard) ? Scope::cache_shard : Scope::cache;
    }
};

// Features of the running kernel by the names used in `wq-tunectl status` and in policies. Empty: not known.
struct KernelFeatures {
    std::optional<bool> cache_shard;
    std::optional<bool> pwlocks;  // another CPU can do per-CPU work under a lock
};
struct NamedFeature {
    std::string_view name;
    std::optional<bool> KernelFeatures::*value;
};
inline constexpr std::array kFeatures = {
    NamedFeature{"cache_shard", &KernelFeatures::cache_shard},
    NamedFeature{"pwlocks", &KernelFeatures::pwlocks},
};

// The message for a kernel without affinity scopes, on which no scope can be set; "" for other kernels.
std::string lacks_scopes(const KernelInfo& kernel);

// Finds out what the kernel below PATHS has. Never fails: what cannot be read counts as missing. If a boot
// option for a mitigation may turn SMT off and SMT is off now, we assume that this option did it.
KernelInfo probe_kernel(const Paths& paths);

// The scopes of every kernel since 6.6. cache_shard (7.1) is not included.
std::vector<Scope> classic_scopes();

// Detects the features of the kernel below PATHS, without its version and without writes. Reads all of the
// kernel's types (some megabytes, temporarily).
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel);

// The scheduling-domain levels that a kernel was built with. Empty: not known.
struct SchedLevels {
    std::optional<bool> clusters;  // CONFIG_SCHED_CLUSTER
    std::optional<bool> mc;        // CONFIG_SCHED_MC
    friend bool operator==(const SchedLevels&, const SchedLevels&) = default;
};

// Reads the levels of the kernel below PATHS: from its configuration in /boot or /lib/modules, else from its
// types. For the running kernel they are read once.
SchedLevels read_sched_levels(const Paths& paths);

// The kernel's pods in a file in /run. A short-lived program that may read kernel addresses (`wq-tuned
// --pods`) writes it for the daemon, which may not. The kernel makes its pods at boot and never changes
// them, and /run is cleared at boot.

std::string pods_path(const Paths& paths);

// Writes PODS, or the error that prevented reading them, to PATH. Mode 0644. Does not replace pods that PATH
// already has by an error: they are still valid.
Status leave_pods(const std::string& path, const Result<KernelPods>& pods);

// Reads the file of leave_pods(); nullopt if PATH does not exist. Errors: the one that leave_pods() stored,
// or an error of the file itself.
std::optional<Result<KernelPods>> find_pods(const std::string& path);

}  // namespace wq
