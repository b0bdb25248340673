// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/effect.h"

namespace wq::bench {

// The results of one run of a scope, or the medians of several runs.
struct Figures {
    double mb_per_s = 0;  // 10^6 bytes
    double p50 = 0;       // of a write, ns
    double p90 = 0;
    double p99 = 0;
    double kworkers = 0;                  // ab::count_kworkers() after the run
    std::optional<double> items_per_s{};  // of the workqueue; empty if the kernel's counts cannot be read
    std::optional<double> cpu{};          // CPU time per item, ns
};

struct Row {
    std::string scope;
    std::optional<std::size_t> pools;
    std::vector<Figures> runs;
    // Compared with the first row; not set in the first row itself.
    std::optional<Effect> effect;  // of the time per byte. Empty without runs
    std::string verdict{};         // improved, regressed, undecided; "" if the run was cut off
    double e_improved = 1;
    double e_regressed = 1;
};

// Identifies what was measured. Does not contain the name of the host, so that results can be published.
struct Host {
    std::string cpu;     // its model; "" if not known
    std::string kernel;  // release
    unsigned cpus = 0;
    unsigned cores = 0;
    std::vector<unsigned> llc_cores{};         // of each LLC
    std::optional<unsigned> cache_shard_size;  // cores; empty if the kernel has no cache_shard
    std::optional<bool> is_virtual;
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

// The medians of the runs; all 0 if there are none.
Figures medians_of(const Row& row);
// The improved row with the best effect; nullptr if there is none.
const Row* best_of(const BenchResult& result);

inline constexpr int kFormat = 1;
nlohmann::ordered_json to_json(const BenchResult& result);
// Parses the output of to_json(). Error: EBADMSG if TEXT is not a benchmark of this format.
Result<BenchResult> parse_result(const std::string& text);

}  // namespace wq::bench
