// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "bpf/bpf_dump.h"
#include "bpf/work_monitor.h"
#include "ctl/device_mapper.h"
#include "ctl/kworker.h"
#include "ctl/observe/top_rates.h"
#include "machine/paths.h"

namespace wq::ctl {

// One kworker during a look.
struct KworkerUse {
    int pid = 0;
    std::string name;
    std::uint64_t cpu_ns = 0;
    bool stuck = false;     // busy with one item that was in uninterruptible sleep in all readings
    std::string work;       // at the last reading
    CpuSet cpus;            // where it may run; filled in by the caller
    std::string sleeps_in;  // the kernel function, if it is stuck; filled in by the caller
};

// Adds up readings of all kworkers.
class KworkerWatch {
  public:
    void add(const std::vector<Kworker>& reading);
    // The kworkers that used CPU time or are stuck. Needs two readings.
    [[nodiscard]] std::vector<KworkerUse> uses() const;

  private:
    struct Seen {
        Kworker last;
        KworkerUse use;
        unsigned readings = 0;  // latest readings in a row that found it in the same sleep
    };
    std::map<int, Seen> seen_;
    unsigned readings_ = 0;
};

// Everything that was seen in one look at the machine's kworkers.
struct DiagnoseLook {
    double seconds = 0;
    CpuSet online;
    std::vector<KworkerUse> kworkers;
    TopInterval work;                         // from the start to the end
    std::optional<std::vector<RanWork>> ran;  // empty if kworkers were not sampled
    std::optional<KernelDump> dump;           // empty if it cannot be read
    CpuSet isolated;
    std::map<std::string, std::uint64_t> on_isolated;  // items of per-CPU workqueues that started there
    std::map<std::string, CryptBypass> bypassed;       // workqueues of dm-crypt that work bypasses
    std::uint64_t hog_ns = 10'000'000;                 // the kernel's threshold for an item that holds a CPU
    std::vector<std::string> missing;                  // what cannot be seen here, and why
};

// Finds what keeps the kworkers busy: the document of `diagnose --json` (docs/json.md).
nlohmann::ordered_json diagnose(const DiagnoseLook& look);
// That document of LOOK in plain words, COLUMNS wide.
std::string diagnosis_text(const nlohmann::ordered_json& diagnosis, const DiagnoseLook& look,
                           std::size_t columns);

struct DiagnoseOptions {
    double seconds = 5;
    bool json = false;
};

struct DiagnoseTools {
    Paths paths;  // of /proc and /sys
    WorkMonitor& monitor;
    Result<KernelDump> (*dump)() = nullptr;
};

// `wq-tunectl diagnose`: watches for a while and prints what keeps kworkers busy. A signal ends the look
// early; then it prints what was seen so far. Fails if the kernel's workqueues cannot be listed.
int diagnose(const DiagnoseOptions& options, const DiagnoseTools& tools);

}  // namespace wq::ctl
