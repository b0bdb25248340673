// SPDX-License-Identifier: LGPL-2.1-or-later
// The result of a benchmark: its document and its table.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/version.h"
#include "ctl/lab/bench.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"

namespace wq::lab {
namespace {

using ctl::effect_in;
using ctl::printable;
using ctl::wrapped;

constexpr int kFormat = 1;

// The figures of a run. UNIT: what the table shows is the figure divided by it.
struct NamedFigure {
    const char* key;
    std::optional<double> Figures::*member;
    const char* heading = "";
    double unit = 1;
};
constexpr std::array kFigures{NamedFigure{"items_per_s", &Figures::items_per_s, "ITEMS/S", 1},
                              NamedFigure{"enqueue_p50_ns", &Figures::p50, "P50", 1000},
                              NamedFigure{"enqueue_p90_ns", &Figures::p90, "P90", 1000},
                              NamedFigure{"enqueue_p95_ns", &Figures::p95, "P95", 1000},
                              NamedFigure{"enqueue_p99_ns", &Figures::p99, "P99", 1000},
                              NamedFigure{"pools", &Figures::pools, "POOLS", 1},
                              NamedFigure{"kworkers", &Figures::kworkers, "KW", 1},
                              NamedFigure{"mb_per_s", &Figures::mb_per_s, "MB/S", 1},
                              NamedFigure{"io_p50_ns", &Figures::io_p50},
                              NamedFigure{"io_p99_ns", &Figures::io_p99},
                              NamedFigure{"cpu_ns_per_item", &Figures::cpu}};
constexpr std::size_t kInTable = 7;  // what 80 columns have room for; MB/S too where there are no items

constexpr const char* kLegend =
    "Medians of the runs. P50 to P99: time in queue_work() in us. KW: kworkers of these pools. Verdicts: of "
    "the time per byte, the median of the pairs and its 95% interval.";

std::string text(const BenchResult& place, const char* key, const char* otherwise = "") {
    const auto& word = place.at(key);
    return word.is_null() ? otherwise : printable(word.get<std::string>());
}
unsigned number(const BenchResult& place, const char* key) {
    return place.at(key).get<unsigned>();
}

// The scopes of RESULT under LOAD, the reference first.
std::vector<BenchResult> rows_of(const BenchResult& result, const std::string& load) {
    std::vector<BenchResult> out;
    for (const auto& row : result.at("scopes"))
        if (row.at("load") == load) out.push_back(row);
    return out;
}

std::string llcs_text(const std::vector<unsigned>& cores) {
    const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
    const std::string sizes =
        *least == *most ? plural(*most, "core") : fmt::format("{} to {} cores", *least, *most);
    return fmt::format(", {} of {}", plural(cores.size(), "LLC"), sizes);
}

// "Intel Xeon E5, 8 CPUs, 8 cores, 8 LLCs of 1 core, virtual, kernel 6.12.107".
std::string host_text(const BenchResult& result) {
    const auto& host = result.at("host");
    std::string out = text(host, "cpu", "unknown CPU") + ", " + plural(number(host, "cpus"), "CPU") + ", " +
                      plural(number(host, "cores"), "core");
    if (const auto llcs = host.at("llc_cores").get<std::vector<unsigned>>(); !llcs.empty())
        out += llcs_text(llcs);
    if (const auto& is_virtual = host.at("virtual"); !is_virtual.is_null())
        out += is_virtual.get<bool>() ? ", virtual" : ", not virtual";
    out += ", kernel " + text(host, "kernel");
    if (!host.at("cache_shard_size").is_null())
        out += fmt::format(", cache_shard_size {}", number(host, "cache_shard_size"));
    return out;
}

std::string settings_text(const BenchResult& result) {
    const auto& s = result.at("settings");
    return fmt::format(
        "{} of fio with {} x {} KiB in flight, {} of {:g} s; dm-crypt over null_blk; wq-tuned {}",
        plural(number(s, "threads"), "thread"), number(s, "depth"), kBlock / 1024,
        plural(number(result, "rounds"), "round"), s.at("seconds").get<double>(), text(result, "wq_tuned"));
}

// For each load a sentence: what is known to be better than the kernel's scope. Then what is not there.
std::vector<std::string> findings(const BenchResult& result) {
    std::vector<std::string> out;
    if (number(result, "rounds") == 0) out.emplace_back("Nothing was measured.");
    for (const auto& [load, word] : result.at("best").items()) {
        const auto rows = rows_of(result, load);
        if (rows.empty()) continue;
        const std::string reference = text(rows.front(), "scope");
        if (word.is_null() && number(result, "rounds") > 0)
            out.push_back(fmt::format("{}: no scope is known to be better than {}, this kernel's.",
                                      printable(load), reference));
        for (const auto& row : rows)
            if (const auto effect = effect_in(row); effect && row.at("scope") == word)
                out.push_back(fmt::format("{}: {} against {}, this kernel's scope: {}.", printable(load),
                                          text(row, "scope"), reference, effect_text(*effect)));
    }
    for (const auto& [key, says] : {std::pair{"missing", "Not seen: "}, {"stopped", "Ended early: "}})
        if (const std::string why = text(result, key); !why.empty()) out.push_back(says + why);
    return out;
}

// Two digits, as many as the times have: 0.31, 3.5, 33. Whole numbers where nothing is divided.
std::string figure_text(const BenchResult& row, const NamedFigure& figure) {
    auto value = row.at("median").is_null() ? BenchResult() : row.at("median").at(figure.key);
    if (value.is_null() && figure.member == &Figures::pools) value = row.at("pools");  // by the plan
    if (value.is_null()) return "-";
    const double shown = value.get<double>() / figure.unit;
    return fmt::format("{:.{}f}", shown, figure.unit == 1 ? 0 : shown < 1 ? 2 : shown < 10 ? 1 : 0);
}

// "reference", "31% better (24 to 37)", "undecided", "same pods as cache": a control of the noise.
std::string verdict_text(const BenchResult& row, const std::string& reference) {
    if (row.at("role") == "reference") return "reference";
    const auto effect = effect_in(row);
    std::string verdict = text(row, "verdict", "-");
    if (effect && (verdict == "improved" || verdict == "regressed")) verdict = effect_text(*effect);
    const std::string same = text(row, "same_pods_as");
    if (same.empty()) return verdict;
    // Of the pods of another scope the effect is that scope's, too, and no noise.
    const bool is_noise = same == reference && verdict != "undecided" && verdict != "-";
    return "same pods as " + same + (is_noise ? ": " + verdict : "");
}

// The improved row with the best effect; "" if there is none.
std::string best_of(const std::vector<Row>& rows, const std::string& load) {
    const Row* best = nullptr;
    for (const Row& row : rows)
        if (const ArmResult& of = row.result; row.load == load && row.same.empty() &&
                                              of.verdict == "improved" && of.effect &&
                                              (!best || of.effect->percent < best->result.effect->percent))
            best = &row;
    return best != nullptr ? best->arm : "";
}

// The scopes of RESULT under LOAD; "" if there are none.
std::string load_table(const BenchResult& result, const std::string& load, std::size_t columns, bool colour) {
    const auto rows = rows_of(result, load);
    if (rows.empty()) return "";
    const bool counted = std::ranges::any_of(
        rows, [](const BenchResult& row) { return figure_text(row, kFigures.front()) != "-"; });
    const std::size_t figures = counted ? kInTable : kInTable + 1;
    std::vector<std::string> header{load == "write" ? "WRITE" : "READ"};
    for (std::size_t i = 0; i < figures; i++) header.emplace_back(kFigures.at(i).heading);
    header.emplace_back("VERDICT");
    ctl::Table table(std::move(header));
    for (const BenchResult& row : rows) {
        std::vector<std::string> cells{text(row, "scope")};
        for (std::size_t i = 0; i < figures; i++) cells.push_back(figure_text(row, kFigures.at(i)));
        cells.push_back(verdict_text(row, text(rows.front(), "scope")));
        table.add(std::move(cells));
    }
    return table.text(columns, colour) + "\n";
}

}  // namespace

BenchResult bench_result(std::int64_t time, const nlohmann::ordered_json& host, const BenchSettings& settings,
                         const Measured& measured) {
    BenchResult out{{"bench", kFormat},
                    {"time", time},
                    {"wq_tuned", version()},
                    {"rounds", measured.rounds},
                    {"missing", measured.missing},
                    {"stopped", measured.stopped},
                    {"host", host},
                    {"settings",
                     {{"threads", settings.threads},
                      {"depth", settings.depth},
                      {"seconds", settings.seconds},
                      {"rounds", settings.rounds},
                      {"block_bytes", kBlock}}},
                    {"best", BenchResult::object()},
                    {"scopes", BenchResult::array()}};
    for (std::size_t i = 0; i < measured.rows.size(); i++) {
        const Row& row = measured.rows[i];
        out["best"][row.load] = word_or_null(best_of(measured.rows, row.load));
        BenchResult figures{{"load", row.load},
                            {"same_pods_as", word_or_null(row.same)},
                            {"median", nullptr},
                            {"runs", BenchResult::array()}};
        for (const NamedFigure& figure : kFigures)
            if (const auto summary = summary_of(row, figure.member); !row.runs.empty())
                figures["median"][figure.key] = summary ? BenchResult(summary->median) : nullptr;
        for (const Figures& run : row.runs) {
            auto& each = figures["runs"].emplace_back();
            for (const NamedFigure& figure : kFigures) each[figure.key] = or_null(run.*figure.member);
        }
        out["scopes"].push_back(row_json("scope", row, row.reference == i, figures));
    }
    return out;
}

std::string bench_table(const BenchResult& result, std::size_t columns, bool colour) {
    std::string out;
    for (const char* load : {"write", "read"}) out += load_table(result, load, columns, colour);
    for (const std::string& line : findings(result)) out += wrapped(line, columns);
    for (const std::string& line : {host_text(result), settings_text(result), std::string(kLegend)})
        out += wrapped(line, columns);
    return out;
}

}  // namespace wq::lab
