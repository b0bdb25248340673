// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"

namespace wq {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxReadings = 4U << 20;  // bytes; 512 pairs of one counter have 20 KB
constexpr std::size_t kMaxCounters = 64;

constexpr std::string_view kJudged = ".json";
constexpr std::string_view kCutOff = ".cut-off.json";

// JSON in which invalid UTF-8 is replaced. So a record that was written and read again has the same text.
std::string text_of(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// File names sort by the time at which the comparisons ended. Names of the same second differ in the hash of
// the comparison's key, target and number.
std::string file_of(const VerdictRecord& record) {
    const VerdictKey& key = record.key;
    const std::string about = text_of({key.kernel, key.topology, key.kind, key.reference, key.candidate,
                                       key.judge, record.target, record.comparison});
    return fmt::format("{:013}-{:016x}{}", record.time, hash_of(about), record.judged ? kJudged : kCutOff);
}

// Removes the oldest files. KEPT has just been written and stays, even if the clock was wrong.
void forget_oldest(const std::string& folder, const std::string& kept) {
    std::vector<fs::path> judged;
    std::vector<fs::path> cut_off;
    std::vector<fs::path> gone;  // first, files that a killed daemon left half written
    std::error_code error;
    for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
        const std::string name = at->path().filename();
        if (name == kept) continue;
        if (name.ends_with(".json.new")) gone.push_back(at->path());
        if (name.ends_with(kJudged)) (name.ends_with(kCutOff) ? cut_off : judged).push_back(at->path());
    }
    const auto leave = [&](std::vector<fs::path>& files, std::size_t most) {
        if (files.size() <= most) return;
        std::ranges::sort(files);
        gone.insert(gone.end(), files.begin(), files.end() - static_cast<std::ptrdiff_t>(most));
    };
    const bool is_cut_off = kept.ends_with(kCutOff);
    leave(judged, kMostRead - (is_cut_off ? 0 : 1));
    leave(cut_off, kMostCutOffRead - (is_cut_off ? 1 : 0));
    for (const fs::path& file : gone) fs::remove(file, error);
}

std::vector<double> column(const json& list) {
    auto out = list.get<std::vector<double>>();
    if (out.size() > ComparisonReadings::kMost ||
        std::ranges::any_of(out, [](double v) { return !std::isfinite(v) || v <= 0; }))
        throw json::other_error::create(501, "not readings", nullptr);
    return out;
}

ComparisonReadings readings_from(const json& document) {
    ComparisonReadings out;
    for (const json& each : document) {
        const auto reference = column(each.at("reference"));
        const auto candidate = column(each.at("candidate"));
        if (out.counters.empty()) out.pairs.resize(reference.size());
        if (reference.size() != out.pairs.size() || candidate.size() != reference.size() ||
            out.counters.size() == kMaxCounters)
            throw json::other_error::create(501, "counters of different lengths", nullptr);
        out.counters.push_back({each.at("counter"), each.at("higher_is_better")});
        for (std::size_t i = 0; i < reference.size(); i++)
            out.pairs[i].push_back({reference[i], candidate[i]});
    }
    return out;
}

}  // namespace

void ComparisonReadings::add(std::vector<PairValues> pair) {
    if (pairs.size() < kMost) pairs.push_back(std::move(pair));
}

json to_json(const ComparisonReadings& readings) {
    json out = json::array();
    for (std::size_t i = 0; i < readings.counters.size(); i++) {
        json reference = json::array();
        json candidate = json::array();
        for (const auto& pair : readings.pairs) {
            reference.push_back(pair[i].reference);
            candidate.push_back(pair[i].candidate);
        }
        out.push_back({{"counter", readings.counters[i].name},
                       {"higher_is_better", readings.counters[i].higher_is_better},
                       {"reference", std::move(reference)},
                       {"candidate", std::move(candidate)}});
    }
    return out;
}

Status keep_readings(const Paths& paths, const VerdictRecord& record, const ComparisonReadings& readings) {
    if (readings.pairs.empty()) return {};
    std::error_code ignored;  // publish_file() reports the error
    fs::create_directories(paths.readings(), ignored);
    const std::string file = file_of(record);
    auto done = publish_file(paths.readings() + "/" + file, text_of(to_json(readings)) + "\n");
    forget_oldest(paths.readings(), file);
    return done;
}

Result<ComparisonReadings> read_readings(const Paths& paths, const VerdictRecord& record) {
    const std::string path = paths.readings() + "/" + file_of(record);
    const auto text = read_file(path, kMaxReadings);
    if (!text) return tl::unexpected(text.error());
    try {
        return readings_from(json::parse(*text));
    } catch (const json::exception& error) {
        return fail(path + ": " + json_error_text(error.what()), EBADMSG);
    }
}

}  // namespace wq
