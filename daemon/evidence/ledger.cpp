// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/ledger.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

namespace wq {
namespace {

using nlohmann::json;

constexpr int kLedgerVersion = 1;

[[noreturn]] void refuse(const std::string& why) {
    throw json::other_error::create(501, why, nullptr);
}

// A number that this program writes is finite and within a range; any other one was not written by it.
double number(const json& value, double low, double high) {
    const auto out = value.get<double>();
    if (!(out >= low && out <= high)) refuse("a number out of its range");
    return out;
}

std::uint64_t count(const json& value) {
    if (!value.is_number_unsigned()) refuse("a number that is not a count");
    return value.get<std::uint64_t>();
}

StakeLogs logs_from(const json& values) {
    StakeLogs out{};
    if (values.size() != out.size()) refuse("wrong number of stakes");
    for (std::size_t i = 0; i < out.size(); i++) out[i] = number(values.at(i), -kMostLog, kMostLog);
    return out;
}

constexpr double kMax = std::numeric_limits<double>::max();

json to_json(const Comparison::Column& c) {
    return {{"counter", c.counter.name},
            {"higher_is_better", c.counter.higher_is_better},
            {"tolerance", c.counter.tolerance},
            {"guard", c.counter.guard},
            {"pairs", c.worse.count},
            {"better", c.better.logs},
            {"better_squares", c.better.squares},
            {"worse", c.worse.logs},
            {"worse_squares", c.worse.squares},
            {"sum", c.sum},
            {"largest", c.largest},
            {"reference_cost", c.reference_cost},
            {"candidate_cost", c.candidate_cost},
            {"last", c.last}};
}

Comparison::Column column_from(const json& j) {
    Comparison::Column out;
    out.counter = {j.at("counter").get<std::string>(), j.at("higher_is_better").get<bool>(),
                   number(j.at("tolerance"), 0, 1), j.at("guard").get<bool>()};
    out.better = {logs_from(j.at("better")), number(j.at("better_squares"), 0, kMax), count(j.at("pairs"))};
    out.worse = {logs_from(j.at("worse")), number(j.at("worse_squares"), 0, kMax), out.better.count};
    out.sum = number(j.at("sum"), -kMax, kMax);
    out.largest = number(j.at("largest"), 0, kMax);
    out.reference_cost = number(j.at("reference_cost"), 0, kMax);
    out.candidate_cost = number(j.at("candidate_cost"), 0, kMax);
    for (const json& d : j.at("last")) out.last.push_back(number(d, -kMax, kMax));
    if (out.last.size() > Comparison::kLastDifferences) refuse("too many differences");
    return out;
}

json to_json(const EDetector::State& s) {
    return {{"logs", s.logs}, {"squares", s.squares}, {"weight", s.weight}};
}

EDetector::State detector_from(const json& j) {
    return {logs_from(j.at("logs")), number(j.at("squares"), 0, kMax), number(j.at("weight"), 0, kMax)};
}

json to_json(const LedgerKey& k) {
    return {{"kernel", k.kernel},
            {"topology", k.topology},
            {"scheduler", k.scheduler},
            {"class", k.kind},
            {"reference", k.reference},
            {"candidate", k.candidate},
            {"reference_origin", k.reference_origin},
            {"partitions", k.partitions},
            {"counters", k.counters},
            {"window", k.window}};
}

LedgerKey key_from(const json& j) {
    const auto text = [&](const char* name) { return j.at(name).get<std::string>(); };
    return {text("kernel"),           text("topology"),
            text("scheduler"),        text("class"),
            text("reference"),        text("candidate"),
            text("reference_origin"), j.at("partitions").get<std::array<std::string, 2>>(),
            text("counters"),         text("window")};
}

Judgement judgement_from(const std::string& word) {
    for (const auto one : {Judgement::undecided, Judgement::improved, Judgement::regressed})
        if (word == name_of(one)) return one;
    refuse("unknown verdict '" + word + "'");
}

json to_json(const LedgerEntry& e) {
    json columns = json::array();
    for (const auto& column : e.columns) columns.push_back(to_json(column));
    json watch = json::array();
    for (const auto& detector : e.watch) watch.push_back(to_json(detector));
    return {{"key", to_json(e.key)},
            {"columns", columns},
            {"watch", watch},
            {"alarms", e.alarms},
            {"verdict", name_of(e.judgement)},
            {"decided", e.decided},
            {"decided_pairs", e.decided_pairs},
            {"updated", e.updated}};
}

LedgerEntry entry_from(const json& j) {
    LedgerEntry out;
    out.key = key_from(j.at("key"));
    for (const json& column : j.at("columns")) out.columns.push_back(column_from(column));
    for (const json& detector : j.at("watch")) out.watch.push_back(detector_from(detector));
    if (std::ranges::all_of(out.columns, [](const auto& c) { return c.counter.guard; }))
        refuse("an entry with no counters other than guards");
    if (!out.watch.empty() && out.watch.size() != out.columns.size())
        refuse("the watch does not match the counters");
    out.alarms = static_cast<unsigned>(count(j.at("alarms")));
    out.judgement = judgement_from(j.at("verdict").get<std::string>());
    out.decided = static_cast<std::int64_t>(count(j.at("decided")));
    out.decided_pairs = count(j.at("decided_pairs"));
    out.updated = static_cast<std::int64_t>(count(j.at("updated")));
    return out;
}

}  // namespace

double alpha_after(double alpha, unsigned alarms) {
    return std::ldexp(alpha, -static_cast<int>(std::min(alarms, 1000U)) - 1);
}

std::string LedgerKey::text() const {
    std::string out;
    for (const std::string* part : {&kernel, &topology, &scheduler, &kind, &reference, &candidate,
                                    &reference_origin, &partitions[0], &partitions[1], &counters, &window})
        out += *part + "\n";
    return out;
}

Result<Ledger> Ledger::from_text(std::string_view text) {
    try {
        const json document = json::parse(text);
        if (document.at("version") != kLedgerVersion) refuse("unknown version");
        Ledger out;
        out.lacks = document.at("lacks").get<std::string>();
        for (const json& j : document.at("entries")) out.put(entry_from(j));
        return out;
    } catch (const json::exception& error) {
        return fail(json_error_text(error.what()), EBADMSG);
    }
}

std::string Ledger::text() const {
    json entries = json::array();
    for (const auto& [key, entry] : entries_) entries.push_back(to_json(entry));
    // A workqueue's name need not be UTF-8.
    json document{{"version", kLedgerVersion}, {"lacks", lacks}};
    document["entries"] = std::move(entries);
    return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

const LedgerEntry* Ledger::find(const LedgerKey& key) const {
    const auto found = entries_.find(key.text());
    return found == entries_.end() ? nullptr : &found->second;
}

void Ledger::put(LedgerEntry entry) {
    const std::string key = entry.key.text();
    kinds_.insert(entry.key.kind);
    entries_.insert_or_assign(key, std::move(entry));
    if (entries_.size() <= kMostEntries) return;
    // An undecided entry that was measured within the last day is still being measured.
    constexpr std::int64_t kDay = 86'400;
    const std::int64_t now = entries_.at(key).updated;
    const auto rank = [&](const auto& each) {
        const bool open = each.second.judgement == Judgement::undecided;
        return std::tuple(each.first == key, open && each.second.updated > now - kDay, !open,
                          each.second.updated);
    };
    entries_.erase(std::ranges::min_element(entries_, {}, rank));
}

}  // namespace wq
