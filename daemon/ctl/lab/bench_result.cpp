// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "ctl/json_values.h"

namespace wq::lab {
namespace {

using ctl::word_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostRuns = 100'000;

// The keys of an object, and the members that have their values. An empty optional is null.
constexpr std::tuple kFigureKeys{std::pair{"items_per_s", &Figures::items_per_s},
                                 std::pair{"mb_per_s", &Figures::value},
                                 std::pair{"p50_ns", &Figures::p50},
                                 std::pair{"p90_ns", &Figures::p90},
                                 std::pair{"p99_ns", &Figures::p99},
                                 std::pair{"cpu_ns_per_item", &Figures::cpu},
                                 std::pair{"kworkers", &Figures::kworkers}};
constexpr std::tuple kHostKeys{std::pair{"cpu", &Host::cpu},
                               std::pair{"cpus", &Host::cpus},
                               std::pair{"cores", &Host::cores},
                               std::pair{"llc_cores", &Host::llc_cores},
                               std::pair{"virtual", &Host::is_virtual},
                               std::pair{"kernel", &Host::kernel},
                               std::pair{"cache_shard_size", &Host::cache_shard_size}};
constexpr std::tuple kSettingsKeys{
    std::pair{"writers", &Settings::writers}, std::pair{"depth", &Settings::depth},
    std::pair{"seconds", &Settings::seconds}, std::pair{"rounds", &Settings::rounds}};
constexpr std::tuple kResultKeys{
    std::pair{"time", &BenchResult::time}, std::pair{"wq_tuned", &BenchResult::version},
    std::pair{"rounds", &BenchResult::rounds}, std::pair{"missing", &BenchResult::missing},
    std::pair{"stopped", &BenchResult::stopped}};

template <class Keys, class Take>
void for_each_key(const Keys& keys, const Take& take) {
    std::apply([&](const auto&... key) { (take(key.first, key.second), ...); }, keys);
}

template <class T>
ordered_json json_of(const T& value) {
    return value;
}
template <class T>
ordered_json json_of(const std::optional<T>& value) {
    return ctl::or_null(value);
}
template <class T>
void take(const json& value, T& out) {
    value.get_to(out);
}
template <class T>
void take(const json& value, std::optional<T>& out) {
    if (!value.is_null()) out = value.get<T>();
}

template <class T, class Keys>
ordered_json write_keys(const T& from, const Keys& keys) {
    ordered_json out;
    for_each_key(keys, [&](const char* key, auto member) { out[key] = json_of(from.*member); });
    return out;
}
template <class T, class Keys>
T read_keys(const json& object, const Keys& keys) {
    T out;
    for_each_key(keys, [&](const char* key, auto member) { take(object.at(key), out.*member); });
    return out;
}

ordered_json row_json(const Row& row, bool is_reference) {
    ordered_json out{
        {"scope", row.arm},
        {"role", is_reference ? "reference" : "candidate"},
        {"pools", ctl::or_null(row.pools)},
        {"median", row.runs.empty() ? ordered_json(nullptr) : write_keys(medians_of(row), kFigureKeys)},
        {"runs", ordered_json::array()}};
    for (const Figures& run : row.runs) out["runs"].push_back(write_keys(run, kFigureKeys));
    if (!is_reference) add_json(out, row.result);
    return out;
}

Row row_of(const json& object) {
    Row row;
    take(object.at("scope"), row.arm);
    take(object.at("pools"), row.pools);
    const json& runs = object.at("runs");
    for (std::size_t i = 0; i < std::min(runs.size(), kMostRuns); i++)
        row.runs.push_back(read_keys<Figures>(runs.at(i), kFigureKeys));
    if (object.at("role") == "reference") return row;
    std::optional<std::string> verdict;
    take(object.at("verdict"), verdict);
    row.result.verdict = verdict.value_or("");
    take(object.at("e_regressed"), row.result.e_regressed);
    take(object.at("e_improved"), row.result.e_improved);
    if (object.at("effect_percent").is_null()) return row;
    row.result.effect = Effect{object.at("effect_percent").get<double>(), {}};
    if (const json& interval = object.at("interval_percent"); !interval.is_null())
        row.result.effect->interval =
            Effect::Interval{interval.at(0).get<double>(), interval.at(1).get<double>()};
    return row;
}

BenchResult result_of(const json& object) {
    auto out = read_keys<BenchResult>(object, kResultKeys);
    out.host = read_keys<Host>(object.at("host"), kHostKeys);
    out.settings = read_keys<Settings>(object.at("settings"), kSettingsKeys);
    const json& rows = object.at("scopes");
    for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); i++) out.rows.push_back(row_of(rows.at(i)));
    return out;
}

}  // namespace

Figures medians_of(const Row& row) {
    Figures out;
    for_each_key(kFigureKeys, [&](const char*, auto member) {
        std::vector<double> values;
        for (const std::optional<double> value : each(row.runs, member))
            if (value) values.push_back(*value);
        if (!values.empty() && values.size() == row.runs.size())
            out.*member = summary_of(std::move(values)).median;
    });
    return out;
}

const Row* best_of(const BenchResult& result) {
    const Row* best = nullptr;
    for (const Row& row : result.rows)
        if (const ArmResult& of = row.result;
            of.verdict == "improved" && of.effect && of.effect->percent < 0 &&
            (best == nullptr || of.effect->percent < best->result.effect->percent))
            best = &row;
    return best;
}

ordered_json to_json(const BenchResult& result) {
    const Row* best = best_of(result);
    ordered_json out{{"bench", kFormat}};
    out.update(write_keys(result, kResultKeys));
    out["host"] = write_keys(result.host, kHostKeys);
    out["settings"] = write_keys(result.settings, kSettingsKeys);
    out["settings"]["block_bytes"] = kBlock;
    out["best"] = word_or_null(best != nullptr ? best->arm : "");
    out["scopes"] = ordered_json::array();
    for (const Row& row : result.rows) out["scopes"].push_back(row_json(row, &row == result.rows.data()));
    return out;
}

Result<BenchResult> parse_result(const std::string& text) {
    try {
        const json document = json::parse(text);
        if (!document.is_object() || !document.contains("bench"))
            return fail("is not what `bench --save` wrote", EBADMSG);
        if (document.at("bench") != kFormat)
            return fail(
                fmt::format("has format {}, this program reads {}", document.at("bench").dump(), kFormat),
                EBADMSG);
        BenchResult out = result_of(document);
        if (out.rows.empty()) return fail("has no scope", EBADMSG);
        return out;
    } catch (const json::exception& e) {
        return fail(json_error_text(e.what()), EBADMSG);
    }
}

}  // namespace wq::lab
