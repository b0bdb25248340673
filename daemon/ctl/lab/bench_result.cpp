// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "ctl/json_values.h"
#include "ctl/lab/ab_comparison.h"
#include "ctl/lab/bench_load.h"

namespace wq::bench {
namespace {

using ctl::interval_or_null;
using ctl::or_null;
using ctl::word_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostRuns = 100'000;

template <class T>
std::optional<T> optional_of(const json& value) {
    if (value.is_null()) return std::nullopt;
    return value.get<T>();
}

ordered_json figures_json(const Figures& f) {
    return {{"items_per_s", or_null(f.items_per_s)},
            {"mb_per_s", f.mb_per_s},
            {"p50_ns", f.p50},
            {"p90_ns", f.p90},
            {"p99_ns", f.p99},
            {"cpu_ns_per_item", or_null(f.cpu)},
            {"kworkers", f.kworkers}};
}

Figures figures_of(const json& j) {
    return {.mb_per_s = j.at("mb_per_s").get<double>(),
            .p50 = j.at("p50_ns").get<double>(),
            .p90 = j.at("p90_ns").get<double>(),
            .p99 = j.at("p99_ns").get<double>(),
            .kworkers = j.at("kworkers").get<double>(),
            .items_per_s = optional_of<double>(j.at("items_per_s")),
            .cpu = optional_of<double>(j.at("cpu_ns_per_item"))};
}

ordered_json row_json(const Row& row, bool is_reference) {
    ordered_json out{{"scope", row.scope},
                     {"role", is_reference ? "reference" : "candidate"},
                     {"pools", or_null(row.pools)},
                     {"median", row.runs.empty() ? ordered_json(nullptr) : figures_json(medians_of(row))},
                     {"runs", ordered_json::array()}};
    for (const Figures& run : row.runs) out["runs"].push_back(figures_json(run));
    if (is_reference) return out;
    out["verdict"] = word_or_null(row.verdict);
    out["e_regressed"] = row.e_regressed;
    out["e_improved"] = row.e_improved;
    out["effect_percent"] = row.effect ? ordered_json(row.effect->percent) : ordered_json(nullptr);
    out["interval_percent"] = interval_or_null(row.effect.value_or(Effect{}));
    return out;
}

Row row_of(const json& j) {
    Row row{j.at("scope").get<std::string>(), optional_of<std::size_t>(j.at("pools")), {}, {}};
    const json& runs = j.at("runs");
    for (std::size_t i = 0; i < std::min(runs.size(), kMostRuns); i++)
        row.runs.push_back(figures_of(runs.at(i)));
    if (j.at("role") == "reference") return row;
    row.verdict = optional_of<std::string>(j.at("verdict")).value_or("");
    row.e_regressed = j.at("e_regressed").get<double>();
    row.e_improved = j.at("e_improved").get<double>();
    if (j.at("effect_percent").is_null()) return row;
    row.effect = Effect{j.at("effect_percent").get<double>(), {}};
    if (const json& interval = j.at("interval_percent"); !interval.is_null())
        row.effect->interval = Effect::Interval{interval.at(0).get<double>(), interval.at(1).get<double>()};
    return row;
}

ordered_json host_json(const Host& host) {
    return {{"cpu", word_or_null(host.cpu)},
            {"cpus", host.cpus},
            {"cores", host.cores},
            {"llc_cores", host.llc_cores},
            {"virtual", or_null(host.is_virtual)},
            {"kernel", host.kernel},
            {"cache_shard_size", or_null(host.cache_shard_size)}};
}

Host host_of(const json& j) {
    return {optional_of<std::string>(j.at("cpu")).value_or(""),
            j.at("kernel").get<std::string>(),
            j.at("cpus").get<unsigned>(),
            j.at("cores").get<unsigned>(),
            j.at("llc_cores").get<std::vector<unsigned>>(),
            optional_of<unsigned>(j.at("cache_shard_size")),
            optional_of<bool>(j.at("virtual"))};
}

BenchResult result_of(const json& j) {
    const json& settings = j.at("settings");
    BenchResult out{j.at("time").get<std::int64_t>(),
                    j.at("wq_tuned").get<std::string>(),
                    host_of(j.at("host")),
                    {settings.at("writers").get<unsigned>(), settings.at("depth").get<unsigned>(),
                     settings.at("seconds").get<double>(), settings.at("rounds").get<unsigned>()},
                    j.at("rounds").get<unsigned>(),
                    j.at("missing").get<std::string>(),
                    j.at("stopped").get<std::string>(),
                    {}};
    const json& rows = j.at("scopes");
    for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); i++) out.rows.push_back(row_of(rows.at(i)));
    return out;
}

// The median of FIELD in RUNS; empty if a run has none.
std::optional<double> median(const std::vector<Figures>& runs, std::optional<double> Figures::*field) {
    std::vector<double> values;
    for (const Figures& run : runs) {
        if (!(run.*field)) return std::nullopt;
        values.push_back(*(run.*field));
    }
    if (values.empty()) return std::nullopt;
    return ab::summary_of(std::move(values)).median;
}

double median(const std::vector<Figures>& runs, double Figures::*field) {
    std::vector<double> values;
    for (const Figures& run : runs) values.push_back(run.*field);
    return ab::summary_of(std::move(values)).median;
}

}  // namespace

Figures medians_of(const Row& row) {
    return {.mb_per_s = median(row.runs, &Figures::mb_per_s),
            .p50 = median(row.runs, &Figures::p50),
            .p90 = median(row.runs, &Figures::p90),
            .p99 = median(row.runs, &Figures::p99),
            .kworkers = median(row.runs, &Figures::kworkers),
            .items_per_s = median(row.runs, &Figures::items_per_s),
            .cpu = median(row.runs, &Figures::cpu)};
}

const Row* best_of(const BenchResult& result) {
    const Row* best = nullptr;
    for (const Row& row : result.rows)
        if (row.verdict == "improved" && row.effect && row.effect->percent < 0 &&
            (best == nullptr || row.effect->percent < best->effect->percent))
            best = &row;
    return best;
}

ordered_json to_json(const BenchResult& result) {
    const Row* best = best_of(result);
    ordered_json out{{"bench", kFormat},
                     {"time", result.time},
                     {"wq_tuned", result.version},
                     {"host", host_json(result.host)},
                     {"settings",
                      {{"writers", result.settings.writers},
                       {"depth", result.settings.depth},
                       {"block_bytes", kBlock},
                       {"seconds", result.settings.seconds},
                       {"rounds", result.settings.rounds}}},
                     {"rounds", result.rounds},
                     {"missing", result.missing},
                     {"stopped", result.stopped},
                     {"best", word_or_null(best != nullptr ? best->scope : "")},
                     {"scopes", ordered_json::array()}};
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

}  // namespace wq::bench
