// SPDX-License-Identifier: LGPL-2.1-or-later
// The result of a benchmark: its document, its table and its page.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "ctl/json_values.h"
#include "ctl/lab/bench.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/report/drawing.h"

namespace wq::lab {
namespace {

using ctl::effect_in;
using ctl::escape;
using ctl::printable;
using ctl::wrapped;
using nlohmann::json;

constexpr int kFormat = 1;

// The figures of a run. UNIT: what is shown is the figure divided by it.
struct NamedFigure {
    const char* key;
    std::optional<double> Figures::*member;
    const char* heading;
    double unit;
};
constexpr std::array kFigures{NamedFigure{"items_per_s", &Figures::items_per_s, "ITEMS/S", 1},
                              NamedFigure{"enqueue_p50_ns", &Figures::p50, "P50", 1000},
                              NamedFigure{"enqueue_p90_ns", &Figures::p90, "P90", 1000},
                              NamedFigure{"enqueue_p95_ns", &Figures::p95, "P95", 1000},
                              NamedFigure{"enqueue_p99_ns", &Figures::p99, "P99", 1000},
                              NamedFigure{"pools", &Figures::pools, "POOLS", 1},
                              NamedFigure{"kworkers", &Figures::kworkers, "KW", 1},
                              NamedFigure{"mb_per_s", &Figures::mb_per_s, "MB/S", 1},
                              NamedFigure{"io_p50_ns", &Figures::io_p50, "I/O P50", 1000},
                              NamedFigure{"io_p99_ns", &Figures::io_p99, "I/O P99", 1000},
                              NamedFigure{"cpu_ns_per_item", &Figures::cpu, "CPU", 1000}};
constexpr std::size_t kInTable = 7;  // what 80 columns have room for; MB/S too where there are no items

constexpr const char* kLegend =
    "Medians of the runs. P50 to P99: time in queue_work() in us. KW: kworkers of these pools. Verdicts: of "
    "the time per byte, the median of the pairs and its 95% interval.";
constexpr const char* kPageLegend = "I/O P50, I/O P99: time of a read or write; CPU: per work item; in us.";

std::string text(const BenchResult& place, const char* key, const char* otherwise = "") {
    const auto& word = place.at(key);
    return word.is_null() ? otherwise : printable(word.get<std::string>());
}
unsigned number(const BenchResult& place, const char* key) {
    return place.at(key).get<unsigned>();
}
bool is_reference(const BenchResult& row) {
    return row.at("role") == "reference";
}

std::string heading_of(const std::string& load) {
    return load == "write" ? "WRITE" : "READ";
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

// What RESULT lacks, in sentences.
std::vector<std::string> lacks_of(const BenchResult& result) {
    std::vector<std::string> out;
    for (const auto& [key, says] : {std::pair{"missing", "Not seen: "}, {"stopped", "Ended early: "}})
        if (const std::string why = text(result, key); !why.empty()) out.push_back(says + why);
    return out;
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
    for (std::string& lack : lacks_of(result)) out.push_back(std::move(lack));
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
    if (is_reference(row)) return "reference";
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

std::string scopes_html(const std::vector<BenchResult>& scopes) {
    std::vector<std::string> header{heading_of(text(scopes.at(0), "load"))};
    for (const NamedFigure& figure : kFigures) header.emplace_back(figure.heading);
    header.emplace_back("VERDICT");
    ctl::Table table(std::move(header));
    for (const auto& row : scopes) {
        std::vector<std::string> cells{text(row, "scope")};
        for (const NamedFigure& figure : kFigures) cells.push_back(figure_text(row, figure));
        cells.push_back(verdict_text(row, text(scopes.at(0), "scope")));
        table.add(std::move(cells));
    }
    return table.html();
}

// Draws the pairs of each of SCOPES and the reference.
std::string pairs_html(const std::vector<BenchResult>& scopes) {
    std::string out;
    const auto& references = scopes.at(0).at("runs");
    for (const auto& row : scopes) {
        const auto effect = effect_in(row);
        if (is_reference(row) || !effect) continue;
        std::vector<double> percent;
        for (const auto& run : row.at("runs"))
            percent.push_back(100 * (references.at(percent.size()).at("mb_per_s").get<double>() /
                                         run.at("mb_per_s").get<double>() -
                                     1));
        const std::string title = fmt::format("{}: {} against {}: cost of a byte", text(row, "load"),
                                              text(row, "scope"), text(scopes.at(0), "scope"));
        out += ctl::effects_html(title, percent, *effect);
    }
    return out;
}

// The rows of all RESULTS under LOAD, numbered if there are several; "" if there are none.
std::string load_table(const Results& results, const std::string& load, std::size_t columns, bool colour) {
    std::vector<std::pair<std::size_t, BenchResult>> rows;
    for (std::size_t i = 0; i < results.size(); i++)
        for (auto& row : rows_of(results[i].second, load)) rows.emplace_back(i + 1, std::move(row));
    if (rows.empty()) return "";
    std::size_t figures = kInTable;
    if (std::ranges::all_of(rows,
                            [](const auto& row) { return figure_text(row.second, kFigures[0]) == "-"; }))
        figures++;
    std::vector<std::string> header{heading_of(load)};
    for (std::size_t i = 0; i < figures; i++) header.emplace_back(kFigures.at(i).heading);
    header.emplace_back("VERDICT");
    if (results.size() > 1) header.insert(header.begin(), "#");
    ctl::Table table(std::move(header));
    for (const auto& numbered : rows) {
        const auto& [place, row] = numbered;
        std::vector<std::string> cells{text(row, "scope")};
        for (std::size_t i = 0; i < figures; i++) cells.push_back(figure_text(row, kFigures.at(i)));
        const BenchResult& reference = std::ranges::find_if(rows, [&](const auto& one) {
                                           return one.first == numbered.first;  // its first row
                                       })->second;
        cells.push_back(verdict_text(row, text(reference, "scope")));
        if (results.size() > 1) cells.insert(cells.begin(), std::to_string(place));
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
        out["best"][row.load] = ctl::word_or_null(best_of(measured.rows, row.load));
        BenchResult figures{{"load", row.load},
                            {"same_pods_as", ctl::word_or_null(row.same)},
                            {"median", nullptr},
                            {"runs", BenchResult::array()}};
        for (const NamedFigure& figure : kFigures)
            if (const auto summary = summary_of(row, figure.member); !row.runs.empty())
                figures["median"][figure.key] = summary ? BenchResult(summary->median) : nullptr;
        for (const Figures& run : row.runs) {
            auto& each = figures["runs"].emplace_back();
            for (const NamedFigure& figure : kFigures) each[figure.key] = ctl::or_null(run.*figure.member);
        }
        out["scopes"].push_back(row_json("scope", row, row.reference == i, figures));
    }
    return out;
}

Result<BenchResult> parse_result(const std::string& text) {
    try {
        auto document = BenchResult::parse(text);
        if (!document.is_object() || !document.contains("bench"))
            return fail("is not what `bench --save` wrote", EBADMSG);
        if (document.at("bench") == kFormat) return document;
        return fail(fmt::format("has format {}, this program reads {}", document.at("bench").dump(), kFormat),
                    EBADMSG);
    } catch (const json::exception& e) {
        return fail(json_error_text(e.what()), EBADMSG);
    }
}

std::string bench_page(const BenchResult& result, const std::string& machine) {
    std::string body, pairs;
    for (const std::string& finding : findings(result)) body += "<p>" + escape(finding) + "</p>\n";
    for (const auto& [load, best] : result.at("best").items()) {
        const auto rows = rows_of(result, load);
        body += scopes_html(rows);
        pairs += pairs_html(rows);
    }
    for (const std::string& line :
         {std::string(kLegend), std::string(kPageLegend), host_text(result), settings_text(result)})
        body += "<p>" + escape(line) + "</p>\n";
    if (!pairs.empty()) pairs = ctl::section("Pairs", "<div class=\"plots\">\n" + pairs + "</div>\n");
    return ctl::page("wq-tunectl bench",
                     fmt::format("Linux {}; written {}", text(result.at("host"), "kernel"),
                                 utc_text(result.at("time").get<std::int64_t>())),
                     ctl::section("Result", body) + pairs + ctl::section("Machine", machine));
}

std::string bench_table(const Results& results, std::size_t columns, bool colour) {
    std::string out;
    for (const char* load : {"write", "read"}) out += load_table(results, load, columns, colour);
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [file, result] = results[i];
        std::vector<std::string> lines = findings(result);
        lines.push_back(host_text(result));
        lines.push_back(settings_text(result));
        if (results.size() > 1) {
            std::string line = fmt::format("{}: {}: {}; {}", i + 1, printable(file), host_text(result),
                                           settings_text(result));
            for (const std::string& lack : lacks_of(result)) line += " " + lack;
            lines = {std::move(line)};
        }
        for (const std::string& line : lines) out += wrapped(line, columns);
    }
    if (results.size() > 1) out += wrapped("Verdicts are against the reference of the same file.", columns);
    return out + wrapped(kLegend, columns);
}

}  // namespace wq::lab
