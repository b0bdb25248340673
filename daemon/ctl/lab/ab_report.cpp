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
using lab::Rounds;
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

std::string pools_text(const AbReport::Row& row) {
    return row.pools ? std::to_string(*row.pools) : "-";
}

std::vector<std::string> table_row(const AbReport& report, std::size_t arm) {
    const Rounds& rounds = report.rounds;
    const AbReport::Row& row = report.rows[arm];
    const std::size_t runs = rounds.values(arm).size();
    std::vector<std::string> out{
        printable(row.arm), pools_text(row), "-", std::to_string(runs), "-", "-", "-"};
    if (runs > 0) {
        const Summary summary = summary_of(rounds.values(arm));
        const Unit unit = unit_for(rounds, summary.median);
        out[2] = fmt::format("{:.0f}", summary_of(row.kworkers).median);
        out[4] = number_text(summary.mean / unit.size) + unit.name;
        out[5] = number_text(summary.median / unit.size) + unit.name;
        out[6] =
            number_text(summary.min / unit.size) + ".." + number_text(summary.max / unit.size) + unit.name;
    }
    const ArmResult result = arm > 0 ? rounds.result(arm) : ArmResult{};
    out.push_back(result.effect ? effect_text(*result.effect) : "-");
    out.push_back(arm > 0 ? verdict_text(result) : "reference");
    return out;
}

nlohmann::ordered_json row_json(const AbReport& report, std::size_t arm) {
    const Rounds& rounds = report.rounds;
    const AbReport::Row& row = report.rows[arm];
    const Summary summary = summary_of(rounds.values(arm));
    nlohmann::ordered_json out{{"arm", row.arm},
                               {"role", arm == 0 ? "reference" : "candidate"},
                               {"pools", or_null(row.pools)},
                               {"kworkers", nullptr},
                               {"runs", rounds.values(arm).size()},
                               {"mean", nullptr},
                               {"median", nullptr},
                               {"deviation", nullptr},
                               {"min", nullptr},
                               {"max", nullptr},
                               {"values", rounds.values(arm)}};
    if (!rounds.values(arm).empty()) {
        out["kworkers"] = summary_of(row.kworkers).median;
        out["mean"] = summary.mean;
        out["median"] = summary.median;
        out["deviation"] = summary.deviation;
        out["min"] = summary.min;
        out["max"] = summary.max;
    }
    if (arm == 0) return out;
    const ArmResult result = rounds.result(arm);
    out["reason"] = result.reason;
    out["pairs"] = result.pairs;
    add_json(out, result);
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
    for (std::size_t arm = 0; arm < report.rows.size(); arm++) table.add(table_row(report, arm));
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
                               {"alpha", report.settings.alpha},
                               {"tolerance_percent", 100 * report.settings.tolerance},
                               {"rounds", rounds.count()},
                               {"max_rounds", report.settings.max_pairs},
                               {"dropped", rounds.dropped()},
                               {"stopped", report.stopped},
                               {"arms", nlohmann::ordered_json::array()}};
    for (std::size_t arm = 0; arm < report.rows.size(); arm++) out["arms"].push_back(row_json(report, arm));
    return out;
}

std::string ab_recording(const AbReport& report) {
    const Rounds& rounds = report.rounds;
    const bool inverse = rounds.counter().higher_is_better;
    const char* counter = rounds.counter().name == kTimeCounter ? "time" : inverse ? "1/metric" : "metric";
    const auto cost = [&](double value) { return inverse ? 1 / value : value; };
    std::string out = "trial,pair,arm,counter,value\n";
    for (std::size_t arm = 1; arm < report.rows.size(); arm++) {
        const std::string trial = csv_name(report.target, report.rows[arm].arm);
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
