// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "counters/counter_table.h"
#include "policy/quantity.h"
#include "policy/toml.h"

namespace wq {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string_view>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kMaxMinItems = 1'000'000'000;
constexpr std::size_t kMaxMatch = 255;  // bytes; a workqueue's name has at most 31
constexpr std::size_t kMaxItems = 64;   // elements of a list
constexpr seconds kDay = std::chrono::hours(24);

// ---- values

auto read_whole(std::uint64_t low, std::uint64_t high) {
    return [=](const TomlValue& value) -> Result<std::uint64_t> {
        const auto number = static_cast<std::uint64_t>(value.is_integer() ? value.as_integer() : -1);
        if (number >= low && number <= high) return number;
        return refusal(value, fmt::format("must be a whole number from {} to {}", low, high));
    };
}

// One of two words: whether it is YES.
auto read_either(std::string_view no, std::string_view yes) {
    return [=](const TomlValue& value) -> Result<bool> {
        return read_word(value, {no, yes}).map([&](const std::string& word) { return word == yes; });
    };
}

// A time from LOW to HIGH, a whole number of Units.
template <class Unit>
auto time_within(Unit low, Unit high) {
    return [=](const TomlValue& value) -> Result<Unit> {
        const auto time = read_parsed(parse_duration)(value);
        if (!time) return tl::unexpected(time.error());
        if (*time < low || *time > high)
            return refusal(value, fmt::format("must be {} to {}", text_of(low), text_of(high)));
        if (*time % Unit(1) != milliseconds(0)) return refusal(value, "must be a whole number of seconds");
        return std::chrono::duration_cast<Unit>(*time);
    };
}

// node_exporter reads the files of a folder whose names end in ".prom". A file named only ".prom" would be
// hidden.
Result<std::string> parse_textfile(std::string_view path) {
    if (path.empty() || (path.starts_with('/') && path.ends_with(".prom") && !path.ends_with("/.prom")))
        return std::string(path);
    return fail("must be an absolute path that ends in \".prom\", or empty for none");
}

Result<std::string> read_evidence(const TomlValue& value) {
    auto text = read_text(value);
    if (text && text->size() > kMaxEvidence)
        return fail(fmt::format("is longer than {} bytes", kMaxEvidence));
    return text;
}

Result<MaskWish> parse_mask(std::string_view text) {
    if (text == "leave") return MaskWish{};
    if (text == "housekeeping") return MaskWish{MaskWish::Kind::housekeeping, {}};
    auto cpus = CpuSet::parse_list(text);
    if (cpus && !cpus->empty()) return MaskWish{MaskWish::Kind::fixed, std::move(*cpus)};
    return fail("must be a list of CPUs such as \"0-7\", or \"housekeeping\" or \"leave\"");
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

// ---- scopes

std::vector<Scope> read_candidates(const TomlTable& table) {
    Words words;
    for (const Scope scope : kAllScopes) words.push_back(name_of(scope));
    std::vector<Scope> out;
    for (const TomlValue* value : table.elements("candidates", 1, kMaxItems)) {
        const auto word = read_word(*value, words);
        if (!word)
            table.file->error(*value, "a candidate " + word.error().text);
        else if (const Scope scope = *scope_named(*word); std::ranges::find(out, scope) != out.end())
            table.file->error(*value, fmt::format("the candidate \"{}\" is listed twice", *word));
        else
            out.push_back(scope);
    }
    return out;
}

// The scope, candidates and hold of a rule or of [default_scope].
ScopeWish read_wish(const TomlTable& table) {
    using Kind = ScopeWish::Kind;
    Words words = {"auto", "plan", "leave"};
    for (const Scope scope : kAllScopes) words.push_back(name_of(scope));
    ScopeWish out;
    out.candidates = read_candidates(table);
    out.hold = table.get("hold", read_flag).value_or(false);
    const auto word = table.get("scope", [&](const TomlValue& value) { return read_word(value, words); });
    if (!word && table.find("scope") != nullptr) return out;
    const std::string scope = word.value_or("auto");
    const auto named = scope_named(scope);
    out.scope = named.value_or(out.scope);
    out.kind = named              ? Kind::fixed
               : scope == "plan"  ? Kind::plan
               : scope == "leave" ? Kind::leave
                                  : Kind::automatic;
    if (const TomlValue* found = table.find("candidates"); found && out.kind != Kind::automatic)
        table.file->error(*found, fmt::format("candidates is only for scope = \"auto\", not \"{}\"", scope));
    if (out.hold && !out.sets_first())
        table.file->error(*table.find("hold"),
                          fmt::format("hold is only for scope = \"plan\" or a scope's name, "
                                      "which are set first, not \"{}\"",
                                      scope));
    return out;
}

// ---- counters

// Why NAME is neither a counter nor one of MORE; "" if it is one of them.
std::string why_no_counter(const std::string& name, const Words& more) {
    const CounterKind* found = find_counter(name);
    if ((found != nullptr && !found->guard_only) || std::ranges::find(more, name) != more.end()) return "";
    Words known = more;
    for (const CounterKind& kind : counter_kinds())
        if (!kind.guard_only) known.push_back(kind.name);
    return fmt::format("unknown counter {}; known counters: {}", in_quotes(name), fmt::join(known, ", "));
}

// An element of a list of counters.
struct Listed {
    std::string counter;
    const TomlValue* value;
    TomlTable table;  // of its options; empty if it is only a name
};

// The list KEY of TABLE, of at least LEAST elements, with counters of the table of counters and of MORE, each
// once. An element that is a table may have the key OPTION.
std::vector<Listed> read_list(const TomlTable& table, const char* key, std::size_t least, const Words& more,
                              const char* option) {
    static const TomlValue kNoOptions(TomlValue::table_type{});
    std::vector<Listed> out;
    for (const TomlValue* item : table.elements(key, least, kMaxCounters)) {
        const std::string what = fmt::format("an element of {}", key);
        const TomlTable options{item->is_table() ? item : &kNoOptions, table.file, what};
        options.reject_unknown_keys({"counter", option});
        const TomlValue* name = item->is_table() ? options.find("counter") : item;
        const auto counter =
            name == nullptr ? fail("needs a counter, such as counter = \"latency\"") : read_text(*name);
        const TomlValue& place = name == nullptr ? *item : *name;
        if (!counter)
            table.file->error(place, what + " " + counter.error().text);
        else if (const auto why = why_no_counter(*counter, more); !why.empty())
            table.file->error(place, why);
        else if (std::ranges::find(out, *counter, &Listed::counter) != out.end())
            table.file->error(place, fmt::format("counter {} is listed twice", in_quotes(*counter)));
        else
            out.push_back({*counter, item, options});
    }
    return out;
}

void read_judged(const TomlTable& judge, Policy& policy) {
    if (judge.find("counters") != nullptr) policy.judge.counters.clear();
    for (const auto& [counter, value, options] : read_list(judge, "counters", 1, {}, "higher"))
        policy.judge.counters.push_back({counter, options.get("higher", read_either("worse", "better"))
                                                      .value_or(counter_higher_is_better(counter))});
}

void read_guards(const TomlTable& judge, Policy& policy) {
    const Words more = {"throughput", "cpu", "workers", kOthers};
    if (judge.find("guards") != nullptr) policy.judge.guards.clear();
    for (const auto& [counter, value, options] : read_list(judge, "guards", 0, more, "tolerance")) {
        if (options.find("tolerance") == nullptr)
            judge.file->error(*value,
                              "this needs a tolerance, such as { counter = \"cpu\", tolerance = \"5%\" }");
        policy.judge.guards.push_back(
            {counter, options.get("tolerance", read_parsed(parse_percentage)).value_or(0)});
    }
}

Json counters_json(const Policy& policy) {
    Json out = Json::array();
    for (const auto& [name, higher_is_better] : policy.judge.counters)
        if (higher_is_better == counter_higher_is_better(name))
            out.push_back(name);
        else
            out.push_back({{"counter", name}, {"higher", higher_is_better ? "better" : "worse"}});
    return out;
}

Json guards_json(const Policy& policy) {
    Json out = Json::array();
    for (const auto& [counter, tolerance] : policy.judge.guards)
        out.push_back({{"counter", counter}, {"tolerance", percentage_text(tolerance)}});
    return out;
}

// ---- the tables of keys

template <class T>
auto& field_of(T& whole, auto field) {
    if constexpr (requires { whole.*field; })
        return whole.*field;
    else if constexpr (requires { whole.judge.*field; })
        return whole.judge.*field;
    else if constexpr (requires { whole.judge.settings.*field; })
        return whole.judge.settings.*field;
    else
        return whole.metrics.*field;
}

// READ: for TomlTable::get(). PRINT: the opposite.
template <class T = Policy, class Read, class Print>
Row<T> row(const char* table, const char* key, auto field, Read read, Print print) {
    return {table, key,
            [=](const TomlTable& from, T& out) {
                if (auto value = from.get(key, read))
                    field_of(out, field) =
                        static_cast<std::remove_cvref_t<decltype(field_of(out, field))>>(*value);
            },
            [=](const T& of) -> Json { return print(field_of(of, field)); }};
}

template <class T = Policy, class Read>
Row<T> row(const char* table, const char* key, auto field, Read read) {
    return row<T>(table, key, field, read, [](const auto& value) { return value; });
}

// The keys that rules and [default_scope] have in common.
template <class T>
std::vector<Row<T>> wish_keys(const char* table) {
    const auto with_scope = [](const TomlTable&, T&) {};  // read_wish() reads it
    return {
        {table, "scope", [](const TomlTable& from, T& out) { out.wish = read_wish(from); },
         [](const T& of) -> Json { return of.wish.text(); }},
        {table, "candidates", with_scope,
         [](const T& of) {
             Json out;
             for (const Scope scope : of.wish.candidates) out.push_back(name_of(scope));
             return out;
         }},
        {table, "hold", with_scope, [](const T& of) { return of.wish.hold ? Json(true) : Json(); }},
        row<T>(table, "expires", &T::expires, read_day, text_or_null),
        row<T>(table, "evidence", &T::evidence, read_evidence, text_or_null),
    };
}

void read_match(const TomlTable& table, WorkqueueRule& rule) {
    if (table.find("match") == nullptr)
        table.file->error(*table.value, "a rule needs a match, such as match = \"kcryptd-*\"");
    for (const TomlValue* value : table.elements("match", 1, kMaxItems)) {
        auto text = read_text(*value);
        if (text && text->size() > kMaxMatch) text = fail(fmt::format("is longer than {} bytes", kMaxMatch));
        if (!text) table.file->error(*value, "match " + text.error().text);
        rule.match.push_back(text.value_or(""));
        rule.match_origins.push_back(table.file->origin(*value));
    }
}

std::vector<Row<WorkqueueRule>> all_rule_keys() {
    const char* const table = "workqueue";
    auto out = wish_keys<WorkqueueRule>(table);
    out.insert(out.begin(), {table, "match", read_match, [](const WorkqueueRule& rule) {
                                 return rule.match.size() == 1 ? Json(rule.match[0]) : Json(rule.match);
                             }});
    out.push_back(row<WorkqueueRule>(table, "strict", &WorkqueueRule::strict, read_flag,
                                     [](auto strict) { return strict ? Json(*strict) : Json(); }));
    out.push_back(row<WorkqueueRule>(
        table, "cpumask", &WorkqueueRule::mask, read_parsed(parse_mask),
        [](const auto& mask) { return mask.kind == MaskWish::Kind::leave ? Json() : Json(mask.text()); }));
    return out;
}

// Of [default_scope]: what is read into the last of its tables, and what is in force.
std::vector<Row<Policy>> default_scope_keys() {
    const char* const table = "default_scope";
    auto keys = wish_keys<DefaultScope>(table);
    keys.insert(keys.begin(), row<DefaultScope>(table, "manage", &DefaultScope::manage, read_flag));
    std::vector<Row<Policy>> out;
    for (const auto& each : keys)
        out.push_back({table, each.key,
                       [read = each.read](const TomlTable& from, Policy& policy) {
                           read(from, policy.default_scope_tables.back().keys);
                       },
                       [value = each.value](const Policy& policy) { return value(policy.default_scope); }});
    return out;
}

std::vector<Row<Policy>> all_settings() {
    const auto time = [](const char* key, auto field, auto low, auto high) {
        return row("judge", key, field, time_within(low, high), [](auto t) { return text_of(t); });
    };
    std::vector<Row<Policy>> out = {
        row("daemon", "mode", &Policy::mode, read_either("observe", "tune"),
            [](Mode mode) { return name_of(mode); }),
        row("daemon", "on_exit", &Policy::keep_on_exit, read_either("restore", "keep"),
            [](bool keep) { return keep ? "keep" : "restore"; }),
        row("shard", "size", &Policy::shard_size, read_whole(1, kMaxShardSize)),
        row("judge", "alpha", &JudgeSettings::alpha, read_parsed(parse_alpha)),
        row("judge", "tolerance", &JudgeSettings::tolerance, read_parsed(parse_percentage), percentage_text),
        time("window", &Judging::window, kMinWindow, kMaxWindow),
        time("washout", &Judging::washout, milliseconds(0), kMaxWindow),
        row("judge", "max_pairs", &JudgeSettings::max_pairs, read_whole(1, kMaxPairs)),
        row("judge", "min_items", &JudgeSettings::min_items, read_whole(0, kMaxMinItems)),
        row("judge", "concurrent", &Judging::concurrent, read_whole(1, kMaxConcurrent)),
        time("recheck", &Judging::recheck, seconds(1), kDay),
        row("judge", "run_length", &Judging::run_length, read_whole(1, kMaxRunLength)),
        {"judge", "counters", read_judged, counters_json},
        {"judge", "guards", read_guards, guards_json},
        time("budget", &Judging::budget, seconds(1), kDay),
        time("retry_after", &Judging::retry_after, seconds(0), seconds(kMaxDuration)),
        time("jitter", &Judging::jitter, seconds(0), 7 * kDay),
        time("settle", &Judging::settle, seconds(0), kDay),
        row("judge", "hours", &Judging::hours, read_parsed(parse_hours), hours_text),
        row("default_mask", "cpumask", &Policy::default_mask, read_parsed(parse_mask),
            [](const MaskWish& mask) { return mask.text(); }),
        row("metrics", "textfile", &Metrics::textfile, read_parsed(parse_textfile)),
    };
    const auto keys = default_scope_keys();
    out.insert(out.end() - 2, keys.begin(), keys.end());
    return out;
}

// Reads the table NAME, of which TABLE is the one of a source.
void read_settings(const TomlTable& table, const std::string& name, Policy& policy) {
    const bool is_scope = name == "default_scope";
    if (is_scope) policy.default_scope_tables.emplace_back();
    Words known;
    for (const Row<Policy>& setting : settings()) {
        if (setting.table != name) continue;
        setting.read(table, policy);
        known.push_back(setting.key);
        const TomlValue* value = table.find(setting.key);
        if (value == nullptr) continue;
        const Origin origin = table.file->origin(*value);
        auto& origins = is_scope ? policy.default_scope_tables.back().origins : policy.origins;
        origins[name + "." + setting.key] = origin;
        if (setting.key == "window" || setting.key == "washout") policy.times = origin;
    }
    table.reject_unknown_keys(known);
    if (!is_scope) return;
    const TomlValue* scope = table.find("scope");
    policy.default_scope_tables.back().keys.origin = table.file->origin(scope ? *scope : *table.value);
    policy.merge_default_scope();
}

}  // namespace

const std::vector<Row<Policy>>& settings() {
    static const auto kSettings = all_settings();
    return kSettings;
}

const std::vector<Row<WorkqueueRule>>& rule_keys() {
    static const auto kRuleKeys = all_rule_keys();
    return kRuleKeys;
}

void read_tables(const TomlTable& top, Policy& policy, std::vector<std::string_view> more) {
    more.emplace_back("workqueue");
    for (const Row<Policy>& setting : settings()) {
        if (std::ranges::find(more, setting.table) != more.end()) continue;
        more.push_back(setting.table);
        if (const auto table = top.table(setting.table)) read_settings(*table, setting.table, policy);
    }
    std::vector<WorkqueueRule> rules;
    for (const TomlTable& table : top.tables("workqueue", kMaxRules)) {
        Words known;
        WorkqueueRule& rule = rules.emplace_back();
        rule.origin = table.file->origin(*table.value);
        for (const auto& each : rule_keys()) {
            each.read(table, rule);
            known.push_back(each.key);
        }
        table.reject_unknown_keys(known);
        if (const TomlValue* mask = table.find("cpumask")) rule.mask_origin = table.file->origin(*mask);
    }
    policy.rules.insert(policy.rules.begin(), rules.begin(), rules.end());  // latest source first
    top.reject_unknown_keys(more);
}

}  // namespace wq
