// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/settings.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"
#include "policy/counter_lists.h"
#include "policy/quantity.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array kModes = {Mode::observe, Mode::tune};
constexpr unsigned kMaxMinItems = 1'000'000'000;
constexpr seconds kDay = std::chrono::hours(24);
constexpr seconds kMaxJitter = 7 * kDay;

std::vector<std::string_view> scope_words() {
    std::vector<std::string_view> words;
    for (Scope scope : kAllScopes) words.push_back(name_of(scope));
    return words;
}

std::vector<std::string_view> wish_words() {
    std::vector<std::string_view> words = scope_words();
    words.insert(words.begin(), {"auto", "plan", "leave"});
    return words;
}

// The scopes that candidates names; empty if there are none or one is invalid.
std::vector<Scope> read_candidates(TomlTable& table) {
    std::vector<Scope> out;
    for (const TomlItem& item : table.texts("candidates").value_or(std::vector<TomlItem>{})) {
        const auto scope = scope_named(item.text);
        if (!scope)
            table.error(item.place,
                        no_such_word("a candidate", in_quotes(item.text), item.text, scope_words()));
        else if (std::ranges::find(out, *scope) != out.end())
            table.error(item.place, fmt::format("the candidate \"{}\" is listed twice", item.text));
        else
            out.push_back(*scope);
    }
    return out;
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

// The element of CHOICES whose name is the value of KEY.
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
        table.refuse(key, fmt::format("{} must be a whole number of seconds", key));
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

// node_exporter reads the files of a folder whose names end in ".prom". A file named only ".prom" would be
// hidden.
bool is_textfile(std::string_view path) {
    constexpr std::string_view kEnd = ".prom";
    return path.starts_with('/') && path.ends_with(kEnd) && !path.ends_with("/.prom");
}

std::string clock_text(const Hours& hours) {
    return fmt::format("{:02}:{:02}-{:02}:{:02}", hours.begin / 60, hours.begin % 60, hours.end / 60,
                       hours.end % 60);
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

// read_wish() reads it, for the key "scope".
void read_with_scope(TomlTable& /*table*/, const char* /*key*/, Policy& /*policy*/) {}

constexpr Setting kSettings[] = {
    {"daemon", "mode",
     [](TomlTable& t, const char* key, Policy& p) { assign(p.mode, read_choice(t, key, kModes)); },
     [](const Policy& p) -> Json { return name_of(p.mode); }},
    {"daemon", "on_exit",
     [](TomlTable& t, const char* key, Policy& p) {
         if (const auto word = t.word(key, {"restore", "keep"})) p.keep_on_exit = *word == "keep";
     },
     [](const Policy& p) -> Json { return p.keep_on_exit ? "keep" : "restore"; }},
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
     [](const Policy& p) -> Json { return percentage_text(p.judge.settings.tolerance); }},
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
    {"judge", "concurrent",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.concurrent, t.number(key, 1, kMaxConcurrent));
     },
     [](const Policy& p) -> Json { return p.judge.concurrent; }},
    {"judge", "recheck",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.recheck, read_time(t, key, seconds(1), kDay));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.recheck); }},
    {"judge", "run_length",
     [](TomlTable& t, const char* key, Policy& p) {
         if (const auto pairs = t.number(key, 1, kMaxRunLength)) p.judge.run_length = *pairs;
     },
     [](const Policy& p) -> Json { return p.judge.run_length; }},
    {"judge", "counters",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.judge.counters, read_counters(t)); },
     [](const Policy& p) -> Json { return counters_json(p.judge.counters); }},
    {"judge", "guards",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.judge.guards, read_guards(t)); },
     [](const Policy& p) -> Json { return guards_json(p.judge.guards); }},
    {"judge", "budget",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.budget, read_time(t, key, seconds(1), kDay));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.budget); }},
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
    {"judge", "settle",
     [](TomlTable& t, const char* key, Policy& p) {
         assign(p.judge.settle, read_time(t, key, seconds(0), kDay));
     },
     [](const Policy& p) -> Json { return text_of(p.judge.settle); }},
    {"judge", "hours",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.judge.hours, read_hours(t)); },
     [](const Policy& p) -> Json { return clock_text(p.judge.hours); }},
    {"default_scope", "manage",
     [](TomlTable& t, const char* key, Policy& p) { p.default_scope_tables.back().manage = t.flag(key); },
     [](const Policy& p) -> Json { return p.default_scope.manage; }},
    {"default_scope", "scope",
     [](TomlTable& t, const char* /*key*/, Policy& p) { p.default_scope_tables.back().wish = read_wish(t); },
     [](const Policy& p) -> Json { return p.default_scope.wish.text(); }},
    {"default_scope", "candidates", read_with_scope,
     [](const Policy& p) { return candidates_json(p.default_scope.wish); }},
    {"default_scope", "hold", read_with_scope,
     [](const Policy& p) -> Json { return p.default_scope.wish.hold ? Json(true) : Json(); }},
    {"default_scope", "expires",
     [](TomlTable& t, const char*, Policy& p) { p.default_scope_tables.back().expires = read_expires(t); },
     [](const Policy& p) { return text_or_null(p.default_scope.expires); }},
    {"default_scope", "evidence",
     [](TomlTable& t, const char*, Policy& p) { p.default_scope_tables.back().evidence = read_evidence(t); },
     [](const Policy& p) { return text_or_null(p.default_scope.evidence); }},
    {"default_mask", "cpumask",
     [](TomlTable& t, const char* /*key*/, Policy& p) { assign(p.default_mask, read_mask(t)); },
     [](const Policy& p) -> Json { return p.default_mask.text(); }},
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
    using Kind = ScopeWish::Kind;
    const auto word = table.word("scope", wish_words());
    ScopeWish out;
    out.candidates = read_candidates(table);
    out.hold = table.flag("hold").value_or(false);
    if (!word && table.has("scope")) return std::nullopt;
    const std::string scope = word.value_or("auto");
    if (const auto named = scope_named(scope)) {
        out.kind = Kind::fixed;
        out.scope = *named;
    } else {
        out.kind = scope == "plan" ? Kind::plan : scope == "leave" ? Kind::leave : Kind::automatic;
    }
    if (table.has("candidates") && out.kind != Kind::automatic)
        table.error(table.place_of("candidates"),
                    fmt::format("candidates is only for scope = \"auto\", not \"{}\"", scope));
    if (out.hold && !out.sets_first())
        table.error(table.place_of("hold"),
                    fmt::format("hold is only for scope = \"plan\" or a scope's name, "
                                "which are set first, not \"{}\"",
                                scope));
    if (!word && !table.has("candidates") && !table.has("hold")) return std::nullopt;
    return out;
}

Json candidates_json(const ScopeWish& wish) {
    Json out;
    for (const Scope scope : wish.candidates) out.push_back(name_of(scope));
    return out;
}

std::string read_expires(TomlTable& table) {
    const auto text = table.day("expires");
    if (!text) return "";
    if (const auto day = parse_date(*text)) return *day;
    table.refuse("expires", "expires must be a day without a time, such as 2027-01-31");
    return "";
}

std::string read_evidence(TomlTable& table) {
    std::string out = table.string("evidence").value_or("");
    if (out.size() > kMaxEvidence)
        table.error(table.place_of("evidence"),
                    fmt::format("evidence is longer than {} bytes", kMaxEvidence));
    return out;
}

std::optional<MaskWish> read_mask(TomlTable& table) {
    const auto text = table.scalar("cpumask");
    if (!text) return std::nullopt;
    if (*text == "leave") return MaskWish{};
    if (*text == "housekeeping") return MaskWish{MaskWish::Kind::housekeeping, {}};
    auto cpus = CpuSet::parse_list(*text);
    if (cpus && !cpus->empty()) return MaskWish{MaskWish::Kind::fixed, std::move(*cpus)};
    const char* what = cpus ? "cpumask must be a list with at least one CPU"
                            : "cpumask must be a list of CPUs such as \"0-7\"";
    table.refuse("cpumask", fmt::format("{}, or \"housekeeping\" or \"leave\"", what));
    return std::nullopt;
}

}  // namespace wq
