// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bpf/work_counters.h"
#include "ctl/lab/lab.h"

namespace wq::lab {

inline constexpr std::uint64_t kBlock = 32'768;  // bytes of a read or write: one work item of dm-crypt

struct BenchSettings {
    unsigned threads = 1;
    unsigned depth = 16;  // reads or writes in flight of each thread
    double seconds = 1;   // of a run, without the time to settle
    unsigned rounds = 16;
    std::vector<std::string> loads = {"write", "read"};
};

// fio, whose threads read or write random blocks with O_DIRECT. With several in flight each, a few CPUs
// submit more work than they can do alone, and the scope decides which other CPUs help.
class Fio {
  public:
    explicit Fio(const Processes& processes, std::string program = "fio")
        : processes_(processes), program_(std::move(program)) {}
    Fio(const Fio&) = delete;
    Fio& operator=(const Fio&) = delete;
    virtual ~Fio() = default;

    // Why it cannot run here.
    [[nodiscard]] virtual Status check() const;
    // Does LOAD, "write" or "read", on DEVICE, a file if it has no number. The figures are of the time after
    // it settled. Errors: a read or write failed; EINTR for a signal.
    virtual Result<Figures> run(const CryptDevice& device, const BenchSettings& settings,
                                const std::string& load);

  private:
    const Processes& processes_;
    std::string program_;
};

struct BenchTools {
    Lab lab;
    Fio& fio;
    WorkCounters& counters;
};

struct Measured {
    std::vector<Row> rows = {};  // by load, the reference of each first
    unsigned rounds = 0;         // completed rounds, without dropped ones
    std::string missing = {};    // what could not be counted, and why; "" if nothing
    std::string stopped = {};    // why it ended early; "" if it did not
};

// Makes the devices, compares all scopes of the kernel under each load, and removes the devices in any case.
// The caller is in_lab(). After an error, the result has the completed rounds.
Measured run_bench(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& settings);

// A result of `bench` as --json prints it.
using BenchResult = nlohmann::ordered_json;

// TIME: s since 1970. HOST: what was measured, without its name, so that results can be published.
BenchResult bench_result(std::int64_t time, const nlohmann::ordered_json& host, const BenchSettings& settings,
                         const Measured& measured);
// For each load, the figures of each scope; then the findings, the host and the settings.
std::string bench_table(const BenchResult& result, std::size_t columns, bool colour);

}  // namespace wq::lab

namespace wq::ctl {

struct BenchOptions {
    lab::BenchSettings settings;
    std::optional<unsigned> threads;  // a quarter of the CPUs if not given
    bool restore = false;             // only restore and remove what an earlier run left
    bool json = false;
};

// `wq-tunectl bench`: compares the scopes on a dm-crypt device of its own.
int bench(const BenchOptions& options, const lab::BenchTools& tools);

}  // namespace wq::ctl
