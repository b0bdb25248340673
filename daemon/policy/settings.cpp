// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "counters/counter_table.h"
#include "policy/quantity.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array kModes = {Mode::observe, Mode::guard, Mode::tune};
constexpr std::array kKeeps = {Keep::unless_regressed, Keep::if_improved};
constexpr unsigned kMaxMinItems = 1'000'000'000;
constexpr seconds kMaxJitter = std::chrono::hours(7 * 24);

std::vector<std::string_view> wish_words() {
    std::vector<std::string_view> words{"auto", "leave"};
    for (Scope scope : kAllScopes) words.push_back(name_of(scope));
    return words;
}

// The one of CHOICES whose name KEY has.
template <class T, std::size_t N>
std::optional<T> read_choice(TomlTable& table, const std::string& key, const std::array<T, N>& choices) {
    std::vector<std::string_view> words;
    words.reserve(N);
    for (T choice : choices) words.push_back(name_of(choice));
    const auto word = table.word(key, words);
    for (T choice : choices)
        if (word == name_of(choice)) return choice;
    return std::nullopt;
}

// Why there is no such counter, or "".
std::string unknown(const std::string& name) {
    if (const CounterKind* kind = find_counter(name); kind != nullptr && !kind->guard_only) return "";
    std::vector<std::string_view> known;
    for (const CounterKind& kind : counter_kinds())
        if (!kind.guard_only) known.push_back(kind.name);
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
    table.reject_unknown_keys();
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

// node_exporter reads the files of a folder whose names end so. One without a name would be hidden.
bool is_textfile(std::string_view path) {
    constexpr std::string_view kEnd = ".prom";
    return path.starts_with('/') && path.ends_with(kEnd) && !path.ends_with("/.prom");
}

// A share as a percentage that reads as just that share: in as few decimals as that takes.
std::string percentage(double share) {
    const auto reads_back = [&](const std::string& text) {
        const auto read = parse_percentage(text);
        return read && *read == share;
    };
    const double percent = share * 100;
    for (int decimals = 0; decimals <= 17; decimals++)
        if (auto text = fmt::format("{:.{}f}%", percent, decimals); reads_back(text)) return text;
    for (const double near : {percent, std::nextafter(percent, 0.0), std::nextafter(percent, 101.0)})
        if (auto text = fmt::format("{}%", near); reads_back(text)) return text;
    return fmt::format("{}%", percent);
}

std::string clock_text(const Hours& hours) {
    return fmt::format("{:02}:{:02}-{:02}:{:02}", hours.begin / 60, hours.begin % 60, hours.end / 60,
                       hours.end % 60);
}

Json counter_json(const JudgedCounter& counter) {
    if (counter.higher_is_better == counter_higher_is_better(counter.name)) return counter.name;
    return {{"counter", counter.name}, {"higher", counter.higher_is_better ? "better" : "worse"}};
}

template <class T>
void assign(T& target, const std::optional<T>& value) {
    if (value) target = *value;
}

void read_textfile(TomlTable& table, const char* key, Policy& policy) {
    const auto path = table.scalar(key);
    if (!path) return;
    if (path->empty() || is_textfile(*path))
        policy.metrics.textfile = *path;
    else
        table.refuse(key, "textfile must be an absolute path that ends in \".prom\", or empty for none");
}

Json counters_json(const Policy& policy) {
    Json out = Json::array();
    for (const JudgedCounter& counter : policy.judge.counters) out.push_back(counter_json(counter));
    return out;
}

constexpr Setting kSettings[] = {
    {"daemon", "mode",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.mode, read_choice(t, key, kModes)); },
     [](const Policy& p) -> Json { return name_of(p.mode); }},
    {"daemon", "on_exit",
     [](TomlTable& t, const char* key, Policy& p) {
         if (const auto word = t.word(key, {"restore", "keep"})) p.keep_on_exit = *word == "keep";
     },
     [](const Policy& p) -> Json { return p.keep_on_exit ? "keep" : "restore"; }},
    {"daemon", "apply_unjudged",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.apply_unjudged, t.flag(key)); },
     [](const Policy& p) -> Json { return p.apply_unjudged; }},
    {"daemon", "keep",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.keep, read_choice(t, key, kKeeps)); },
     [](const Policy& p) -> Json { return name_of(p.keep); }},
    {"shard", "size",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.shard_size, t.number(key, 1, kMaxShardSize)); },
     [](const Policy& p) -> Json { return p.shard_size; }},
    {"judge", "alpha",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.settings.alpha, t.parsed(key, parse_alpha_or_percentage));
     },
     [](const Policy& p) -> Json { return p.judge.settings.alpha; }},
    {"judge", "tolerance",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.settings.tolerance, t.parsed(key, parse_tolerance));
     },
     [](const Policy& p) -> Json { return percentage(p.judge.settings.tolerance); }},
    {"judge", "window",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.window, read_time(t, key, kMinWindow, kMaxWindow));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.window); }},
    {"judge", "washout",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.washout, read_time(t, key, milliseconds(0), kMaxWindow));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.washout); }},
    {"judge", "max_pairs",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.settings.max_pairs, t.number(key, 1, kMaxPairs));
     },
     [](const Policy& p) -> Json { return p.judge.settings.max_pairs; }},
    {"judge", "min_items",
     [](TomlTable& t, const char* key, Policy& p) {
         if (const auto items = t.number(key, 0, kMaxMinItems)) p.judge.settings.min_items = *items;
     },
     [](const Policy& p) -> Json { return p.judge.settings.min_items; }},
    {"judge", "counters",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.judge.counters, read_counters(t)); },
     counters_json},
    {"judge", "retry_after",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.retry_after, read_time(t, key, seconds(0), seconds(kMaxDuration)));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.retry_after); }},
    {"judge", "jitter",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.jitter, read_time(t, key, seconds(0), kMaxJitter));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.jitter); }},
    {"judge", "hours",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.judge.hours, read_hours(t)); },
     [](const Policy& p) -> Json { return clock_text(p.judge.hours); }},
    {"default_scope", "manage",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.default_scope.manage, t.flag(key)); },
     [](const Policy& p) -> Json { return p.default_scope.manage; }},
    {"default_scope", "scope",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.default_scope.wish, read_wish(t)); },
     [](const Policy& p) -> Json { return p.default_scope.wish.text(); }},
    {"metrics", "textfile", read_textfile, [](const Policy& p) -> Json { return p.metrics.textfile; }},
};

}  // namespace

std::span<const Setting> settings() {
    return kSettings;
}

void read_settings(TomlTable& table, std::string_view name, Policy& policy) {
    for (const Setting& setting : kSettings)
        if (name == setting.table) setting.read(table, setting.key, policy);
}

std::optional<ScopeWish> read_wish(TomlTable& table) {
    const auto word = table.word("scope", wish_words());
    if (!word) return std::nullopt;
    if (const auto scope = scope_named(*word)) return ScopeWish{ScopeWish::Kind::fixed, *scope};
    return ScopeWish{*word == "leave" ? ScopeWish::Kind::leave : ScopeWish::Kind::automatic, {}};
}

}  // namespace wq
