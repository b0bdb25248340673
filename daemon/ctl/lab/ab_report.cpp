// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/ab_report.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/render/terminal.h"
#include "evidence/verdicts.h"

namespace wq::ctl {
namespace {

using ab::Comparison;
using ab::Summary;
using ab::summary_of;

struct Unit {
    double size = 1;
    const char* name = "";
};

// The largest unit in which TYPICAL is at least 1.
Unit unit_for(const Comparison& comparison, double typical) {
    if (comparison.counter().name != kTimeCounter) return {};
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
std::string verdict_text(const ab::Verdict& verdict) {
    const auto word = name_of(verdict.decision.judgement);
    if (verdict.reason.empty() || verdict.reason == kMaxPairsReason) return std::string(word);
    return fmt::format("{} ({})", word, verdict.reason);
}

std::string pools_text(const AbReport::Row& row) {
    return row.pools ? std::to_string(*row.pools) : "-";
}

std::vector<std::string> table_row(const AbReport& report, std::size_t arm) {
    const Comparison& comparison = report.comparison;
    const AbReport::Row& row = report.rows[arm];
    const std::size_t runs = comparison.values(arm).size();
    std::vector<std::string> out{
        printable(row.arm), pools_text(row), "-", std::to_string(runs), "-", "-", "-"};
    if (runs > 0) {
        const Summary summary = summary_of(comparison.values(arm));
        const Unit unit = unit_for(comparison, summary.median);
        out[2] = fmt::format("{:.0f}", summary_of(row.kworkers).median);
        out[4] = number_text(summary.mean / unit.size) + unit.name;
        out[5] = number_text(summary.median / unit.size) + unit.name;
        out[6] =
            number_text(summary.min / unit.size) + ".." + number_text(summary.max / unit.size) + unit.name;
    }
    const bool compared = arm > 0 && !comparison.pairs(arm).empty();
    out.push_back(compared ? effect_text(comparison.effect(arm)) : "-");
    if (arm == 0)
        out.emplace_back("reference");
    else
        out.push_back(comparison.verdict(arm) ? verdict_text(*comparison.verdict(arm)) : "-");
    return out;
}

nlohmann::ordered_json row_json(const AbReport& report, std::size_t arm) {
    const Comparison& comparison = report.comparison;
    const AbReport::Row& row = report.rows[arm];
    const Summary summary = summary_of(comparison.values(arm));
    nlohmann::ordered_json out{{"arm", row.arm},
                               {"role", arm == 0 ? "reference" : "candidate"},
                               {"pools", or_null(row.pools)},
                               {"kworkers", nullptr},
                               {"runs", comparison.values(arm).size()},
                               {"mean", nullptr},
                               {"median", nullptr},
                               {"deviation", nullptr},
                               {"min", nullptr},
                               {"max", nullptr},
                               {"values", comparison.values(arm)}};
    if (!comparison.values(arm).empty()) {
        out["kworkers"] = summary_of(row.kworkers).median;
        out["mean"] = summary.mean;
        out["median"] = summary.median;
        out["deviation"] = summary.deviation;
        out["min"] = summary.min;
        out["max"] = summary.max;
    }
    if (arm == 0) return out;
    const Decision at = comparison.decision(arm);
    const auto& verdict = comparison.verdict(arm);
    const Effect effect = comparison.effect(arm);
    out["verdict"] = verdict ? nlohmann::ordered_json(name_of(at.judgement)) : nullptr;
    out["reason"] = verdict ? verdict->reason : "";
    out["pairs"] = at.pairs;
    out["e_regressed"] = evidence_of(at.log_worse);
    out["e_improved"] = evidence_of(at.log_better);
    out["effect_percent"] = nullptr;
    if (!comparison.pairs(arm).empty()) out["effect_percent"] = effect.percent;
    out["interval_percent"] = interval_or_null(effect);
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
    for (const auto& [reason, count] : report.comparison.dropped())
        out += wrapped(fmt::format("Dropped: {} ({}).", plural(count, "round"), reason), columns);
    return out;
}

nlohmann::ordered_json ab_json(const AbReport& report) {
    const Comparison& comparison = report.comparison;
    const bool time = comparison.counter().name == kTimeCounter;
    nlohmann::ordered_json out{{"target", word_or_null(report.target)},
                               {"metric", comparison.counter().name},
                               {"unit", time ? nlohmann::ordered_json("ns") : nullptr},
                               {"higher_is_better", comparison.counter().higher_is_better},
                               {"alpha", report.settings.alpha},
                               {"tolerance_percent", 100 * report.settings.tolerance},
                               {"rounds", comparison.rounds()},
                               {"max_rounds", report.settings.max_pairs},
                               {"dropped", comparison.dropped()},
                               {"stopped", report.stopped},
                               {"arms", nlohmann::ordered_json::array()}};
    for (std::size_t arm = 0; arm < report.rows.size(); arm++) out["arms"].push_back(row_json(report, arm));
    return out;
}

std::string ab_recording(const AbReport& report) {
    const Comparison& comparison = report.comparison;
    const bool inverse = comparison.counter().higher_is_better;
    const char* counter = comparison.counter().name == kTimeCounter ? "time"
                          : inverse                                 ? "1/metric"
                                                                    : "metric";
    const auto cost = [&](double value) { return inverse ? 1 / value : value; };
    std::string out = "trial,pair,arm,counter,value\n";
    for (std::size_t arm = 1; arm < report.rows.size(); arm++) {
        const std::string trial = csv_name(report.target, report.rows[arm].arm);
        unsigned pair = 0;
        for (const PairValues& each : comparison.pairs(arm)) {
            pair++;
            out += fmt::format("{},{},baseline,{},{}\n", trial, pair, counter, cost(each.reference));
            out += fmt::format("{},{},candidate,{},{}\n", trial, pair, counter, cost(each.candidate));
        }
    }
    return out;
}

std::string ab_progress(const Comparison& comparison, const std::vector<AbReport::Row>& rows,
                        unsigned max_rounds) {
    std::string out = fmt::format("round {} of {}", comparison.rounds() + 1, max_rounds);
    for (std::size_t arm = 1; arm < rows.size() && comparison.rounds() > 0; arm++) {
        const auto& verdict = comparison.verdict(arm);
        out += fmt::format("{} {} {}{}", arm == 1 ? ";" : ",", printable(rows[arm].arm),
                           effect_text(Effect{comparison.effect(arm).percent, {}}),
                           verdict ? fmt::format(" {}", name_of(verdict->decision.judgement)) : "");
    }
    return out;
}

}  // namespace wq::ctl
