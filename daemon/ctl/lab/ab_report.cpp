// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/ab_command.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using lab::ArmResult;
using lab::each;
using lab::Figures;
using lab::Rounds;
using lab::Row;
using lab::Summary;
using lab::summary_of;

struct Unit {
    double size = 1;
    const char* name = "";
};

// The largest unit in which TYPICAL is at least 1.
Unit unit_for(const Rounds& rounds, double typical) {
    if (rounds.counter().name != kTimeCounter) return {};
    constexpr std::array units{Unit{1e9, " s"}, Unit{1e6, " ms"}, Unit{1e3, " us"}};
    for (const Unit& unit : units)
        if (typical >= unit.size) return unit;
    return {1, " ns"};
}

// Four significant digits, or all digits before the decimal point.
std::string number_text(double value) {
    return value >= 1000 && value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// "improved" or "undecided (interrupted)". The number of pairs shows that all were used.
std::string verdict_text(const ArmResult& result) {
    if (result.verdict.empty()) return "-";
    if (result.reason.empty() || result.reason == kMaxPairsReason) return result.verdict;
    return fmt::format("{} ({})", result.verdict, result.reason);
}

std::vector<std::string> table_row(const Rounds& rounds, const Row& row) {
    std::vector<std::string> out{printable(row.arm),
                                 row.pools ? std::to_string(*row.pools) : "-",
                                 "-",
                                 std::to_string(row.runs.size()),
                                 "-",
                                 "-",
                                 "-",
                                 row.result.effect ? effect_text(*row.result.effect) : "-",
                                 &row == rounds.rows().data() ? "reference" : verdict_text(row.result)};
    if (row.runs.empty()) return out;
    const Summary summary = summary_of(each(row.runs, &Figures::value));
    const Unit unit = unit_for(rounds, summary.median);
    const auto text = [&](double value) { return number_text(value / unit.size); };
    out[2] = fmt::format("{:.0f}", summary_of(each(row.runs, &Figures::kworkers)).median);
    out[4] = text(summary.mean) + unit.name;
    out[5] = text(summary.median) + unit.name;
    out[6] = text(summary.min) + ".." + text(summary.max) + unit.name;
    return out;
}

nlohmann::ordered_json row_json(const Rounds& rounds, const Row& row) {
    const auto values = each(row.runs, &Figures::value);
    const Summary summary = summary_of(values);
    const bool reference = &row == rounds.rows().data();
    nlohmann::ordered_json out{{"arm", row.arm},
                               {"role", reference ? "reference" : "candidate"},
                               {"pools", or_null(row.pools)},
                               {"runs", values.size()},
                               {"values", values}};
    for (const auto& [key, value] :
         {std::pair{"kworkers", summary_of(each(row.runs, &Figures::kworkers)).median},
          {"mean", summary.mean},
          {"median", summary.median},
          {"deviation", summary.deviation},
          {"min", summary.min},
          {"max", summary.max}})
        out[key] = values.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
    if (reference) return out;
    out["reason"] = row.result.reason;
    out["pairs"] = row.result.pairs;
    add_json(out, row.result);
    return out;
}

// The name of a comparison in a recording, whose reader splits lines at commas and does not know quotes.
std::string csv_name(const std::string& target, const std::string& arm) {
    std::string out = printable(target.empty() ? arm : target + " " + arm);
    for (char& c : out)
        if (c == ',' || c == '"') c = '_';
    return out;
}

}  // namespace

std::string ab_table(const AbReport& report, std::size_t columns, bool colour) {
    Table table({"ARM", "POOLS", "KWORKERS", "RUNS", "MEAN", "MEDIAN", "SPREAD", "EFFECT", "VERDICT"});
    for (const Row& row : report.rounds.rows()) table.add(table_row(report.rounds, row));
    std::string out = table.text(columns, colour);
    out += wrapped("Effects are medians of all pairs, with the 95% interval.", columns);
    for (const auto& [reason, count] : report.rounds.dropped())
        out += wrapped(fmt::format("Dropped: {} ({}).", plural(count, "round"), reason), columns);
    return out;
}

nlohmann::ordered_json ab_json(const AbReport& report) {
    const Rounds& rounds = report.rounds;
    const bool time = rounds.counter().name == kTimeCounter;
    nlohmann::ordered_json out{{"target", word_or_null(report.target)},
                               {"metric", rounds.counter().name},
                               {"unit", time ? nlohmann::ordered_json("ns") : nullptr},
                               {"higher_is_better", rounds.counter().higher_is_better},
                               {"alpha", rounds.settings().alpha},
                               {"tolerance_percent", 100 * rounds.settings().tolerance},
                               {"rounds", rounds.count()},
                               {"max_rounds", rounds.settings().max_pairs},
                               {"dropped", rounds.dropped()},
                               {"stopped", report.stopped},
                               {"arms", nlohmann::ordered_json::array()}};
    for (const Row& row : rounds.rows()) out["arms"].push_back(row_json(rounds, row));
    return out;
}

std::string ab_recording(const AbReport& report) {
    const Rounds& rounds = report.rounds;
    const bool inverse = rounds.counter().higher_is_better;
    const char* counter = rounds.counter().name == kTimeCounter ? "time" : inverse ? "1/metric" : "metric";
    const auto cost = [&](double value) { return inverse ? 1 / value : value; };
    std::string out = "trial,pair,arm,counter,value\n";
    for (std::size_t arm = 1; arm < rounds.rows().size(); arm++) {
        const std::string trial = csv_name(report.target, rounds.rows()[arm].arm);
        unsigned pair = 0;
        for (const PairValues& each : rounds.pairs(arm)) {
            pair++;
            out += fmt::format("{},{},baseline,{},{}\n", trial, pair, counter, cost(each.reference));
            out += fmt::format("{},{},candidate,{},{}\n", trial, pair, counter, cost(each.candidate));
        }
    }
    return out;
}

}  // namespace wq::ctl
