// SPDX-License-Identifier: LGPL-2.1-or-later
// Replaces the other bpf_*.cpp files if clang, bpftool or libbpf was missing at build time.
#include "bpf/bpf_counters.h"
#include "bpf/bpf_dump.h"
#include "bpf/bpf_pods.h"
#include "bpf/bpf_profile.h"
#include "bpf/bpf_statistics.h"
#include "bpf/bpf_top.h"
#include "bpf/no_counters.h"
#include "machine/btf_types.h"

namespace wq {
namespace {

class AbsentMonitor : public WorkMonitor {
  public:
    Status attach(const std::vector<std::string>&, bool) override { return fail("built without BPF"); }
    Result<WorkSample> sample() override { return fail("built without BPF"); }
    [[nodiscard]] std::string limits() const override { return ""; }
};

class AbsentProfile : public WorkProfile {
  public:
    Status attach(const CpuSet&) override { return fail("built without BPF"); }
    Result<ProfileSample> read() override { return fail("built without BPF"); }
    [[nodiscard]] bool samples() const override { return false; }
    [[nodiscard]] std::string limits() const override { return ""; }
};

}  // namespace

Result<KernelFeatures> read_types(const std::string&) {
    return fail("built without BPF");
}

SchedLevels levels_in_types(const std::string&) {
    return {};
}

Result<KernelDump> read_kernel_dump() {
    return fail("built without BPF");
}

Result<KernelPods> read_kernel_pods() {
    return fail("the kernel's own pods were not read: built without BPF");
}

std::unique_ptr<WorkCounters> make_bpf_counters() {
    return std::make_unique<NoCounters>("built without BPF");
}

std::unique_ptr<WorkProfile> make_bpf_profile() {
    return std::make_unique<AbsentProfile>();
}

std::unique_ptr<WorkMonitor> make_bpf_monitor() {
    return std::make_unique<AbsentMonitor>();
}

std::unique_ptr<WorkMonitor> make_statistics_monitor() {
    return std::make_unique<AbsentMonitor>();
}

}  // namespace wq
