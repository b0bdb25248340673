// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A trial's file of readings, which `wq-tunectl history` and reports show.
#include "evidence/verdicts.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz.h"

using wq::fuzz::folder;
using wq::fuzz::require;

static wq::Paths paths() {
    return {folder().root()};
}

// The path of the file that belongs to RECORD.
static std::string file_of(const wq::VerdictRecord& record) {
    wq::ComparisonReadings any;
    any.counters = {{"latency"}};
    any.pairs = {{{1, 2}}};
    require(wq::keep_readings(paths(), record, any).has_value(), "readings can be kept");
    const auto first = std::filesystem::directory_iterator(paths().readings());
    return first->path().string().substr(folder().root().size() + 1);
}

FUZZ_TARGET(readings) {
    const wq::VerdictRecord record;
    static const std::string file = file_of(record);
    folder().write(file, std::string(text));
    const auto readings = wq::read_readings(paths(), record);
    if (!readings) {
        require(readings.error().text.starts_with(folder().path(file) + ": "),
                "what is refused names the file");
        return;
    }
    for (const auto& pair : readings->pairs)
        require(pair.size() == readings->counters.size(), "each pair has a reading of every counter");
    if (readings->pairs.empty()) return;
    require(wq::keep_readings(paths(), record, *readings).has_value(), "what was read can be written");
    const auto again = wq::read_readings(paths(), record);
    require(again && to_json(*again) == to_json(*readings), "what is read is written back to the same");
}
