// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernel/file.h"

namespace wq {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxReadings = 4U << 20;  // bytes; 512 pairs of one counter have 20 KB
constexpr std::size_t kMaxCounters = 64;

// Names sort as trials ended. Those of one second differ by what they were about.
std::string file_of(const VerdictRecord& record) {
    const std::string about = fmt::format("{}\n{}\n{}", record.key.text(), record.target, record.trial);
    return fmt::format("{:013}-{:016x}.json", record.time, XXH64(about.data(), about.size(), 0));
}

void forget_oldest(const std::string& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
         at.increment(error))
        if (at->path().extension() == ".json") files.push_back(at->path());
    if (files.size() <= kMostTrialsRead) return;
    std::ranges::sort(files);
    files.resize(files.size() - kMostTrialsRead);
    for (const fs::path& file : files) fs::remove(file, error);
}

std::vector<double> column(const json& list) {
    auto out = list.get<std::vector<double>>();
    if (out.size() > TrialReadings::kMost ||
        std::ranges::any_of(out, [](double v) { return !std::isfinite(v) || v <= 0; }))
        throw json::other_error::create(501, "not readings", nullptr);
    return out;
}

TrialReadings readings_from(const json& document) {
    TrialReadings out;
    for (const json& each : document) {
        const auto baseline = column(each.at("baseline"));
        const auto candidate = column(each.at("candidate"));
        if (out.counters.empty()) out.pairs.resize(baseline.size());
        if (baseline.size() != out.pairs.size() || candidate.size() != baseline.size() ||
            out.counters.size() == kMaxCounters)
            throw json::other_error::create(501, "counters of different lengths", nullptr);
        out.counters.push_back({each.at("counter"), each.at("higher_is_better")});
        for (std::size_t i = 0; i < baseline.size(); i++) out.pairs[i].push_back({baseline[i], candidate[i]});
    }
    return out;
}

}  // namespace

void TrialReadings::add(const WindowPair& pair) {
    if (pairs.size() < kMost) pairs.push_back(pair.readings);
}

json to_json(const TrialReadings& readings) {
    json out = json::array();
    for (std::size_t i = 0; i < readings.counters.size(); i++) {
        json baseline = json::array();
        json candidate = json::array();
        for (const auto& pair : readings.pairs) {
            baseline.push_back(pair[i].baseline);
            candidate.push_back(pair[i].candidate);
        }
        out.push_back({{"counter", readings.counters[i].name},
                       {"higher_is_better", readings.counters[i].higher_is_better},
                       {"baseline", std::move(baseline)},
                       {"candidate", std::move(candidate)}});
    }
    return out;
}

Status keep_readings(const Paths& paths, const VerdictRecord& record, const TrialReadings& readings) {
    if (readings.pairs.empty()) return {};
    std::error_code ignored;  // replace_file() tells
    fs::create_directories(paths.readings(), ignored);
    const auto text = to_json(readings).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    const auto done = replace_file(paths.readings() + "/" + file_of(record), text);
    forget_oldest(paths.readings());
    return done;
}

Result<TrialReadings> read_readings(const Paths& paths, const VerdictRecord& record) {
    const std::string path = paths.readings() + "/" + file_of(record);
    const auto text = read_file(path, kMaxReadings);
    if (!text) return tl::unexpected(text.error());
    try {
        return readings_from(json::parse(*text));
    } catch (const json::exception& error) {
        return fail(path + ": " + error.what(), EBADMSG);
    }
}

}  // namespace wq
