// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/work_counters.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/bench_result.h"
#include "ctl/lab/devices.h"
#include "ctl/lab/left.h"
#include "ctl/lab/runner.h"

namespace wq::lab {

inline constexpr std::uint64_t kDeviceBytes = 128U << 20U;
// MiB of memory that must be available: twice the size of the writes in flight, and a reserve.
std::uint64_t needed_mib(const Settings& settings);

struct LoadJob {
    std::string path;         // of a device
    std::string number = {};  // its number, "254:0"; "" if it is a file
    unsigned writers = 1;
    unsigned depth = 1;  // writes in flight of each writer
    double settle = 0;   // seconds of writing before the measurement
    double seconds = 0;  // seconds of measured writing
};

// Results of the measured time. p50, p90, p99: time of a write, in ns.
struct LoadFigures {
    double seconds = 0;  // of writing, also before the measurement
    double mb_per_s = 0;
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
};

// Writes to a device.
class Load {
  public:
    Load() = default;
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    virtual ~Load() = default;

    // Why it cannot run here.
    [[nodiscard]] virtual Status check() const = 0;
    // Errors: a write failed; EINTR for a signal.
    virtual Result<LoadFigures> run(const LoadJob& job) = 0;
};

// fio, whose threads write random blocks with O_DIRECT, each with several writes in flight. So a few CPUs
// submit more work than they can do alone, and the scope decides which other CPUs help.
class FioLoad : public Load {
  public:
    explicit FioLoad(const Processes& processes, std::string program = "fio")
        : processes_(processes), program_(std::move(program)) {}
    [[nodiscard]] Status check() const override;
    Result<LoadFigures> run(const LoadJob& job) override;

  private:
    const Processes& processes_;
    std::string program_;
};

struct BenchTools {
    Lab lab;
    Load& load;
    WorkCounters& counters;
};

// Makes the devices, compares all scopes that make different pools on MACHINE, and removes the devices in any
// case. The caller is in_lab(). After an error, RESULT has the completed rounds.
Status run_bench(const BenchTools& tools, const ScopesOf& machine, BenchResult& result);

}  // namespace wq::lab

namespace wq::ctl {

struct BenchOptions {
    lab::Settings settings;
    std::optional<unsigned> writers;   // a quarter of the CPUs if not given
    std::string save;                  // file for --compare; "" = none
    std::string page;                  // file for a browser; "" = none
    std::vector<std::string> compare;  // saved files: nothing is run
    bool restore = false;              // only restore and remove what an earlier run left
    bool json = false;
};

// `wq-tunectl bench`: compares the scopes on a dm-crypt device of its own.
int bench(const BenchOptions& options, const lab::BenchTools& tools);

}  // namespace wq::ctl
