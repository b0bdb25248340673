// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ctl/lab/rounds.h"

namespace wq::lab {

inline constexpr std::uint64_t kBlock = 32 * 1024;  // bytes of a write, which is one work item of dm-crypt

// Identifies what was measured. Does not contain the name of the host, so that results can be published.
struct Host {
    std::optional<std::string> cpu{};  // its model
    std::string kernel;                // release
    unsigned cpus = 0;
    unsigned cores = 0;
    std::vector<unsigned> llc_cores{};           // of each LLC
    std::optional<unsigned> cache_shard_size{};  // cores; empty if the kernel has no cache_shard
    std::optional<bool> is_virtual{};
};

struct Settings {
    unsigned writers = 1;
    unsigned depth = 16;   // writes in flight of each writer
    double seconds = 2.5;  // of a run, without the time to settle
    unsigned rounds = 16;
};

struct BenchResult {
    std::int64_t time = 0;  // s since 1970
    std::string version;    // of wq-tuned
    Host host;
    Settings settings;
    unsigned rounds = 0;    // completed rounds, without dropped ones
    std::string missing;    // what could not be counted, and why; "" if nothing
    std::string stopped;    // why it ended early; "" if it did not
    std::vector<Row> rows;  // the reference first
};

// The medians of the runs; all 0 if there are none. A figure that a run lacks has no median.
Figures medians_of(const Row& row);
// The improved row with the best effect; nullptr if there is none.
const Row* best_of(const BenchResult& result);

inline constexpr int kFormat = 1;
nlohmann::ordered_json to_json(const BenchResult& result);
// Parses the output of to_json(). Error: EBADMSG if TEXT is not a benchmark of this format.
Result<BenchResult> parse_result(const std::string& text);

// The result as a page for a browser, like that of `wq-tunectl report`; it loads no other files. MACHINE:
// HTML of the machine's drawing. The page does not contain the host's name.
std::string bench_page(const BenchResult& result, const std::string& machine);
// The figures of each scope, the finding, the host and the settings, ready to be pasted.
std::string bench_table(const BenchResult& result, std::size_t columns, bool colour);
// One table of several results, each with the name of its file.
std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour);
// The result in one sentence.
std::string finding(const BenchResult& result);
// "Intel Xeon E5, 8 CPUs, 8 cores, 8 LLCs of 1 core, virtual, kernel 6.12.107".
std::string host_text(const Host& host);

}  // namespace wq::lab
