// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/judge_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "counters/counter_table.h"
#include "policy/quantity.h"

namespace wq {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kMaxMinItems = 1'000'000'000;
constexpr seconds kMaxJitter = std::chrono::hours(7 * 24);

// Why there is no such counter, or "".
std::string unknown(const std::string& name) {
    if (find_counter(name) != nullptr) return "";
    std::vector<std::string_view> known;
    for (const CounterKind& kind : counter_kinds()) known.push_back(kind.name);
    if (const auto nearest = suggestion(name, known); !nearest.empty())
        return fmt::format("unknown counter {}{}", in_quotes(name), nearest);
    return fmt::format("unknown counter {}; there are {}", in_quotes(name), fmt::join(known, ", "));
}

Result<double> parse_alpha_or_percentage(std::string_view text) {
    if (!text.ends_with('%')) return parse_alpha(text);
    const auto share = parse_percentage(text);
    return parse_alpha(share ? fmt::format("{}", *share) : "");
}

// A time from LOW to HIGH, a whole number of Units.
template <class Unit>
std::optional<Unit> read_time(TomlTable& table, const std::string& key, Unit low, Unit high) {
    const auto text = table.scalar(key);
    if (!text) return std::nullopt;
    const auto time = parse_duration(*text);
    if (!time)
        table.refuse(key, fmt::format("{} {}", key, time.error().text));
    else if (*time < low || *time > high)
        table.refuse(key, fmt::format("{} must be {} to {}", key, text_of(low), text_of(high)));
    else if (*time % Unit(1) != milliseconds(0))
        table.refuse(key, fmt::format("{} must be whole seconds", key));
    else
        return std::chrono::duration_cast<Unit>(*time);
    return std::nullopt;
}

std::optional<Hours> read_hours(TomlTable& table) {
    const auto text = table.scalar("hours");
    if (!text) return std::nullopt;
    const auto hours = parse_hours(*text);
    if (hours) return *hours;
    table.refuse("hours", "hours " + hours.error().text);
    return std::nullopt;
}

// One counter and where its name is; empty after a mistake.
using Named = std::optional<std::pair<JudgedCounter, Place>>;

// { counter = "file:/run/app/rps", higher = "better" }
Named read_table(TomlTable& table) {
    const auto name = table.string("counter");
    const auto higher = table.word("higher", {"better", "worse"});
    if (!table.has("counter"))
        table.error(table.place(), "this needs the name of a counter, such as counter = \"latency\"");
    table.refuse_the_rest();
    if (!name) return std::nullopt;
    const bool better = higher ? *higher == "better" : counter_higher_is_better(*name);
    return std::pair(JudgedCounter{*name, better}, table.place_of("counter"));
}

Named read_counter(TomlItem& item) {
    if (item.table) return read_table(*item.table);
    return std::pair(JudgedCounter{item.text, counter_higher_is_better(item.text)}, item.place);
}

std::optional<std::vector<JudgedCounter>> read_counters(TomlTable& judge) {
    auto items = judge.items("counters");
    if (!items) return std::nullopt;
    if (items->size() > kMaxCounters) {
        judge.error(judge.place_of("counters"),
                    fmt::format("counters must be at most {}, not {}", kMaxCounters, items->size()));
        return std::nullopt;
    }
    std::vector<JudgedCounter> counters;
    for (TomlItem& item : *items) {
        const Named named = read_counter(item);
        if (!named) continue;
        const auto& [counter, place] = *named;
        const auto same = [&name = counter.name](const JudgedCounter& other) { return other.name == name; };
        if (const auto why = unknown(counter.name); !why.empty())
            judge.error(place, why);
        else if (std::any_of(counters.begin(), counters.end(), same))
            judge.error(place, fmt::format("counter {} is there twice", in_quotes(counter.name)));
        counters.push_back(counter);
    }
    return counters;
}

template <class T>
void assign(T& target, const std::optional<T>& value) {
    if (value) target = *value;
}

}  // namespace

bool counter_higher_is_better(const std::string& name) {
    const CounterKind* kind = find_counter(name);
    return kind != nullptr && kind->higher_is_better;
}

void JudgeReader::read(TomlTable& table, const SourceText& text) {
    JudgeSettings& settings = judging_.settings;
    assign(settings.alpha, table.parsed("alpha", parse_alpha_or_percentage));
    assign(settings.tolerance, table.parsed("tolerance", parse_tolerance));
    assign(settings.max_pairs, table.number("max_pairs", 1, kMaxPairs));
    if (const auto items = table.number("min_items", 0, kMaxMinItems)) settings.min_items = *items;
    assign(judging_.window, read_time(table, "window", kMinWindow, kMaxWindow));
    assign(judging_.washout, read_time(table, "washout", milliseconds(0), kMaxWindow));
    assign(judging_.counters, read_counters(table));
    assign(judging_.retry_after, read_time(table, "retry_after", seconds(0), seconds(kMaxDuration)));
    assign(judging_.jitter, read_time(table, "jitter", seconds(0), kMaxJitter));
    assign(judging_.hours, read_hours(table));
    sources_++;
    for (const char* key : {"window", "washout", "alpha", "max_pairs", "counters"})
        if (table.has(key)) settings_[key] = {key, sources_, text.error(table.place_of(key), "")};
}

JudgeReader JudgeReader::over(Judging& other) const {
    JudgeReader reader(other);
    reader.sources_ = sources_;
    reader.settings_ = settings_;
    return reader;
}

JudgeReader::Setting JudgeReader::setting(const std::string& key) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? Setting{key} : found->second;
}

// Of those set in the same source, the one that KEYS has first.
JudgeReader::Setting JudgeReader::latest(std::initializer_list<const char*> keys) const {
    Setting latest;
    for (const char* key : keys)
        if (const Setting one = setting(key); latest.key.empty() || one.source > latest.source) latest = one;
    return latest;
}

std::optional<JudgeReader::Setting> JudgeReader::washout_too_long() const {
    if (judging_.washout < judging_.window) return std::nullopt;
    const auto said = [](const Setting& setting, milliseconds time) {
        return fmt::format("{} ({})", text_of(time), Origin{setting.place.file, setting.place.line}.text());
    };
    const Setting window = setting("window");
    const Setting washout = setting("washout");
    Setting last = latest({"washout", "window"});
    last.place.message = last.key == "window"
                             ? "window must be more than washout, which is " + said(washout, judging_.washout)
                             : "washout must be less than window, which is " + said(window, judging_.window);
    return last;
}

// The evidence doubles with a pair at best; and the first trial of two arms may not use all of alpha.
std::optional<JudgeReader::Setting> JudgeReader::too_few_pairs() const {
    const auto counters = static_cast<double>(judging_.counters.size());
    const double needed = std::log2(counters / lifetime_alpha(judging_.settings.alpha, 1));
    if (needed <= judging_.settings.max_pairs) return std::nullopt;
    Setting last = latest({"max_pairs", "alpha", "counters"});
    last.place.message = fmt::format(
        "no trial could have a verdict: max_pairs is {}, alpha {} for {} counter{} needs at least {:.0f}",
        judging_.settings.max_pairs, judging_.settings.alpha, counters, counters == 1 ? "" : "s",
        std::ceil(needed));
    return last;
}

PolicyErrors JudgeReader::contradictions() const {
    std::vector<Setting> found;
    for (const auto& one : {washout_too_long(), too_few_pairs()})
        if (one) found.push_back(*one);
    std::stable_sort(found.begin(), found.end(), [](const Setting& a, const Setting& b) {
        return std::tie(a.source, a.place.line) < std::tie(b.source, b.place.line);
    });
    PolicyErrors errors;
    for (const Setting& one : found) errors.push_back(one.place);
    return errors;
}

}  // namespace wq
