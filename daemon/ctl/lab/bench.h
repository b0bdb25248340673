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

inline constexpr std::uint64_t kBlock = 32 * 1024;  // bytes of a write, which is one work item of dm-crypt

struct BenchSettings {
    unsigned writers = 1;
    unsigned depth = 16;   // writes in flight of each writer
    double seconds = 2.5;  // of a run, without the time to settle
    unsigned rounds = 16;
};

// fio, whose threads write random blocks with O_DIRECT, each with several writes in flight. So a few CPUs
// submit more work than they can do alone, and the scope decides which other CPUs help.
class Load {
  public:
    explicit Load(const Processes& processes, std::string program = "fio")
        : processes_(processes), program_(std::move(program)) {}
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    virtual ~Load() = default;

    // Why it cannot run here.
    [[nodiscard]] virtual Status check() const;
    // Writes to DEVICE, a file if it has no number. The figures are of the time after it settled. Errors: a
    // write failed; EINTR for a signal.
    virtual Result<Figures> run(const CryptDevice& device, const BenchSettings& settings);

  private:
    const Processes& processes_;
    std::string program_;
};

struct BenchTools {
    Lab lab;
    Load& load;
    WorkCounters& counters;
};

struct Measured {
    std::vector<Row> rows = {};  // the reference first
    unsigned rounds = 0;         // completed rounds, without dropped ones
    std::string missing = {};    // what could not be counted, and why; "" if nothing
    std::string stopped = {};    // why it ended early; "" if it did not
};

// Makes the devices, compares all scopes that make different pools on MACHINE, and removes the devices in any
// case. The caller is in_lab(). After an error, the result has the completed rounds.
Measured run_bench(const BenchTools& tools, const ScopesOf& machine, const BenchSettings& settings);

// A result of `bench` as --json prints it, --save stores it and --compare reads it.
using BenchResult = nlohmann::ordered_json;

// TIME: s since 1970. HOST identifies what was measured, without the name of the host, so that results can be
// published.
BenchResult bench_result(std::int64_t time, const nlohmann::ordered_json& host, const BenchSettings& settings,
                         const Measured& measured);
// Parses what bench_result() made. Error: EBADMSG if TEXT is not a benchmark of this format. The functions
// below throw a json::exception if the rest is wrong.
Result<BenchResult> parse_result(const std::string& text);

// The result as a page for a browser, like that of `wq-tunectl report`; it loads no other files. MACHINE:
// HTML of the machine's drawing. The page does not contain the host's name.
std::string bench_page(const BenchResult& result, const std::string& machine);
// The figures of each scope, the finding, the host and the settings, ready to be pasted.
std::string bench_table(const BenchResult& result, std::size_t columns, bool colour);
// One table of several results, each with the name of its file.
std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour);

}  // namespace wq::lab

namespace wq::ctl {

struct BenchOptions {
    lab::BenchSettings settings;
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
