// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/text.h"
#include "counters/counter_table.h"
#include "policy/quantity.h"
#include "policy/rule_warnings.h"
#include "policy/toml.h"

namespace wq {

const std::vector<std::string_view> kWhenKeys = {"arch",     "cpu_vendor", "cpu_model", "llc_cores",
                                                 "cores",    "numa_nodes", "smt",       "kernel",
                                                 "hostname", "virtual",    "canary",    "has"};

namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string_view>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kMaxMinItems = 1'000'000'000;
constexpr std::size_t kMaxMatch = 255;  // a workqueue's name has at most 31 bytes
constexpr seconds kDay = std::chrono::hours(24);

// The keys that are not in settings().
const Words kRuleKeys = {"match", "scope", "candidates", "hold", "strict", "cpumask", "expires", "evidence"};
const Words kHostKeys = {"name", "when"};
const Words kTables = {"daemon", "shard", "judge", "metrics", "default_scope", "default_mask", "workqueue"};

// ---- values

auto word_of(Words words) {
    return [words = std::move(words)](const TomlValue& value) { return read_word(value, words); };
}

Result<Mode> read_mode(const TomlValue& value) {
    return read_word(value, {"observe", "tune"}).map([](const std::string& word) {
        return word == "tune" ? Mode::tune : Mode::observe;
    });
}

Result<bool> read_keep(const TomlValue& value) {
    return read_word(value, {"restore", "keep"}).map([](const std::string& word) { return word == "keep"; });
}

Result<double> parse_alpha_or_percentage(std::string_view text) {
    const auto share = percentage_of(text);
    const auto alpha = share ? parse_alpha(fmt::format("{}", *share)) : parse_alpha(text);
    return alpha ? alpha : fail("must be above 0 and at most 0.5");
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

Result<std::string> read_expires(const TomlValue& value) {
    const auto day = read_day(value).and_then(parse_date);
    return day ? day : refusal(value, "must be a day without a time, such as 2027-01-31");
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
    return fail(fmt::format("must be {}, or \"housekeeping\" or \"leave\"",
                            cpus ? "a list with at least one CPU" : "a list of CPUs such as \"0-7\""));
}

// ---- scopes

Words scope_words() {
    Words words;
    for (const Scope scope : kAllScopes) words.push_back(name_of(scope));
    return words;
}

std::vector<Scope> read_candidates(const TomlTable& table) {
    std::vector<Scope> out;
    for (const auto& [text, value] : table.texts("candidates")) {
        const auto scope = scope_named(text);
        if (!scope)
            table.file->error(*value, "a candidate " + no_such_word(in_quotes(text), text, scope_words()));
        else if (std::ranges::find(out, *scope) != out.end())
            table.file->error(*value, fmt::format("the candidate \"{}\" is listed twice", text));
        else
            out.push_back(*scope);
    }
    return out;
}

// The scope, candidates and hold of a rule or of [default_scope]; empty if there are none or one is invalid.
std::optional<ScopeWish> read_wish(const TomlTable& table) {
    using Kind = ScopeWish::Kind;
    Words words = {"auto", "plan", "leave"};
    for (const std::string_view word : scope_words()) words.push_back(word);
    const auto word = table.get("scope", word_of(words));
    ScopeWish out;
    out.candidates = read_candidates(table);
    out.hold = table.get("hold", read_flag).value_or(false);
    if (!word && table.has("scope")) return std::nullopt;
    const std::string scope = word.value_or("auto");
    const auto named = scope_named(scope);
    out.scope = named.value_or(out.scope);
    out.kind = named              ? Kind::fixed
               : scope == "plan"  ? Kind::plan
               : scope == "leave" ? Kind::leave
                                  : Kind::automatic;
    if (table.has("candidates") && out.kind != Kind::automatic)
        table.file->error(*table.find("candidates"),
                          fmt::format("candidates is only for scope = \"auto\", not \"{}\"", scope));
    if (out.hold && !out.sets_first())
        table.file->error(*table.find("hold"),
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

// ---- counters

// Why NAME is neither a counter nor one of MORE; "" if it is one of them.
std::string why_no_counter(const std::string& name, const Words& more) {
    const CounterKind* found = find_counter(name);
    if ((found != nullptr && !found->guard_only) || std::ranges::find(more, name) != more.end()) return "";
    Words known;
    for (const CounterKind& kind : counter_kinds())
        if (!kind.guard_only) known.push_back(kind.name);
    known.insert(known.end(), more.begin(), more.end());
    const auto nearest = suggestion(name, known);
    return fmt::format(
        "unknown counter {}{}", in_quotes(name),
        nearest.empty() ? fmt::format("; known counters: {}", fmt::join(known, ", ")) : nearest);
}

// An element of a list of counters; TABLE unless it is only a name.
struct Listed {
    std::string counter;
    const TomlValue* value;
    std::optional<TomlTable> table;
};

// The list KEY of TABLE, of LEAST to kMaxCounters elements with counters, each once: those of the table of
// counters and MORE. An element that is a table may have the key MORE_KEY.
std::optional<std::vector<Listed>> read_list(const TomlTable& table, const char* key, std::size_t least,
                                             const Words& more, const char* more_key) {
    TomlFile& file = *table.file;
    const auto items = table.items(key, least);
    if (!items) return std::nullopt;
    if (items->size() > kMaxCounters)
        file.error(*table.find(key),
                   fmt::format("{} must have at most {} elements, not {}", key, kMaxCounters, items->size()));
    std::vector<Listed> out;
    for (const TomlValue* item : *items) {
        std::optional<TomlTable> one;
        const TomlValue* name = item;
        if (item->is_table()) {
            one = TomlTable{item, &file, fmt::format("an element of {}", key)};
            one->reject_unknown_keys({"counter", more_key});
            name = one->find("counter");
            if (name == nullptr)
                file.error(*item, "this needs the name of a counter, such as counter = \"latency\"");
        } else if (!item->is_string()) {
            file.refuse(*item, fmt::format("an element of {} must be a string or a table", key));
            continue;
        }
        const auto counter = one ? one->get("counter", read_text) : read_scalar(*item).value_or("");
        if (!counter) continue;
        if (const auto why = why_no_counter(*counter, more); !why.empty())
            file.error(*name, why);
        else if (std::ranges::find(out, *counter, &Listed::counter) != out.end())
            file.error(*name, fmt::format("counter {} is listed twice", in_quotes(*counter)));
        out.push_back({*counter, item, one});
    }
    return out;
}

void read_judged(const TomlTable& judge, Policy& policy) {
    const auto list = read_list(judge, "counters", 1, {}, "higher");
    if (list) policy.judge.counters.clear();
    for (const auto& [counter, value, table] : list.value_or(std::vector<Listed>{})) {
        const auto higher = table ? table->get("higher", word_of({"better", "worse"})) : std::nullopt;
        policy.judge.counters.push_back(
            {counter, higher ? *higher == "better" : counter_higher_is_better(counter)});
    }
}

void read_guards(const TomlTable& judge, Policy& policy) {
    const auto list = read_list(judge, "guards", 0, {"throughput", "cpu", "workers", kOthers}, "tolerance");
    if (list) policy.judge.guards.clear();
    for (const auto& [counter, value, table] : list.value_or(std::vector<Listed>{})) {
        const auto tolerance = table ? table->get("tolerance", read_parsed(parse_percentage)) : std::nullopt;
        if (!table)
            judge.file->error(
                *value,
                "an element of guards must be a table, such as { counter = \"cpu\", tolerance = \"5%\" }");
        else if (!table->has("tolerance"))
            judge.file->error(*value, "this needs a tolerance, such as tolerance = \"2%\"");
        policy.judge.guards.push_back({counter, tolerance.value_or(0)});
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

// ---- the table of settings

auto& field_of(auto& policy, auto Policy::*field) {
    return policy.*field;
}
auto& field_of(auto& policy, auto Judging::*field) {
    return policy.judge.*field;
}
auto& field_of(auto& policy, auto JudgeSettings::*field) {
    return policy.judge.settings.*field;
}
auto& field_of(auto& policy, auto Metrics::*field) {
    return policy.metrics.*field;
}

// READ: for TomlTable::get(). PRINT: the opposite.
template <class Field, class Read, class Print>
Setting row(const char* table, const char* key, Field field, Read read, Print print) {
    return {table, key,
            [=](const TomlTable& from, Policy& policy) {
                using T = std::remove_cvref_t<decltype(field_of(policy, field))>;
                if (auto value = from.get(key, read)) field_of(policy, field) = static_cast<T>(*value);
            },
            [=](const Policy& policy) -> Json { return print(field_of(policy, field)); }};
}

template <class Field, class Read>
Setting row(const char* table, const char* key, Field field, Read read) {
    return row(table, key, field, read, [](const auto& value) { return value; });
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

std::vector<Setting> all_settings() {
    using Default = DefaultScopeTable;
    const auto time = [](const char* key, auto field, auto low, auto high) {
        return row("judge", key, field, time_within(low, high), [](auto t) { return text_of(t); });
    };
    // Of [default_scope]: what is read into the last of its tables, and what is in force.
    const auto scope = [](const char* key, void (*read)(const TomlTable&, Default&),
                          Json (*value)(const Policy::DefaultScope&)) {
        return Setting{
            "default_scope", key,
            [=](const TomlTable& table, Policy& policy) { read(table, policy.default_scope_tables.back()); },
            [=](const Policy& policy) { return value(policy.default_scope); }};
    };
    const auto with_scope = [](const TomlTable&, Default&) {};  // read_wish() reads it
    return {
        row("daemon", "mode", &Policy::mode, read_mode, [](Mode mode) { return name_of(mode); }),
        row("daemon", "on_exit", &Policy::keep_on_exit, read_keep,
            [](bool keep) { return keep ? "keep" : "restore"; }),
        row("shard", "size", &Policy::shard_size, read_whole(1, kMaxShardSize)),
        row("judge", "alpha", &JudgeSettings::alpha, read_parsed(parse_alpha_or_percentage)),
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
        scope(
            "manage", [](auto& t, auto& out) { out.manage = t.get("manage", read_flag); },
            [](auto& now) -> Json { return now.manage; }),
        scope(
            "scope", [](auto& t, auto& out) { out.wish = read_wish(t); },
            [](auto& now) -> Json { return now.wish.text(); }),
        scope("candidates", with_scope, [](auto& now) { return candidates_json(now.wish); }),
        scope("hold", with_scope, [](auto& now) { return now.wish.hold ? Json(true) : Json(); }),
        scope(
            "expires", [](auto& t, auto& out) { out.expires = t.get("expires", read_expires).value_or(""); },
            [](auto& now) { return text_or_null(now.expires); }),
        scope(
            "evidence",
            [](auto& t, auto& out) { out.evidence = t.get("evidence", read_evidence).value_or(""); },
            [](auto& now) { return text_or_null(now.evidence); }),
        row("default_mask", "cpumask", &Policy::default_mask, read_parsed(parse_mask),
            [](const MaskWish& mask) { return mask.text(); }),
        row("metrics", "textfile", &Metrics::textfile, read_parsed(parse_textfile)),
    };
}

void read_settings(const TomlTable& table, const std::string& name, Policy& policy) {
    const bool is_scope = name == "default_scope";
    if (is_scope) policy.default_scope_tables.emplace_back();
    Words known;
    for (const Setting& setting : settings())
        if (setting.table == name) {
            setting.read(table, policy);
            known.push_back(setting.key);
            const TomlValue* value = table.find(setting.key);
            if (value == nullptr) continue;
            const Origin origin = table.file->origin(*value);
            policy.origins[name + "." + setting.key] = origin;
            if (setting.key == "window" || setting.key == "washout") policy.times = origin;
            if (is_scope) policy.default_scope_tables.back().origins[setting.key] = origin;
        }
    table.reject_unknown_keys(known);
    if (!is_scope) return;
    DefaultScopeTable& read = policy.default_scope_tables.back();
    const auto place = read.origins.find(table.has("scope") ? "scope" : "manage");
    read.origin = place == read.origins.end() ? table.file->origin(*table.value) : place->second;
    policy.merge_default_scope();
}

WorkqueueRule read_rule(const TomlTable& table) {
    TomlFile& file = *table.file;
    WorkqueueRule rule;
    rule.origin = file.origin(*table.value);
    if (!table.has("match")) file.error(*table.value, "a rule needs a match, such as match = \"kcryptd-*\"");
    for (auto& [text, value] : table.texts("match")) {
        if (text.size() > kMaxMatch)
            file.error(*value, fmt::format("match is longer than {} bytes", kMaxMatch));
        rule.match.push_back(std::move(text));
        rule.match_origins.push_back(file.origin(*value));
    }
    rule.wish = read_wish(table).value_or(ScopeWish{});
    rule.strict = table.get("strict", read_flag);
    rule.mask = table.get("cpumask", read_parsed(parse_mask)).value_or(MaskWish{});
    if (const TomlValue* mask = table.find("cpumask")) rule.mask_origin = file.origin(*mask);
    rule.expires = table.get("expires", read_expires).value_or("");
    rule.evidence = table.get("evidence", read_evidence).value_or("");
    table.reject_unknown_keys(kRuleKeys);
    return rule;
}

}  // namespace

const std::vector<Setting>& settings() {
    static const std::vector<Setting> kSettings = all_settings();
    return kSettings;
}

void read_tables(const TomlTable& top, Policy& policy, std::vector<std::string_view> more) {
    for (const std::string_view name : kTables)
        if (name != "workqueue")
            if (const auto table = top.table(std::string(name)))
                read_settings(*table, std::string(name), policy);
    const auto tables = top.tables("workqueue");
    if (tables.size() > kMaxRules) {
        top.file->error(*tables[kMaxRules].value, fmt::format("more than {} rules", kMaxRules));
    } else {
        std::vector<WorkqueueRule> rules;
        for (const TomlTable& table : tables) rules.push_back(read_rule(table));
        policy.rules.insert(policy.rules.begin(), rules.begin(), rules.end());  // latest source first
    }
    more.insert(more.end(), kTables.begin(), kTables.end());
    top.reject_unknown_keys(more);
}

Json rule_json(const WorkqueueRule& rule) {
    Json out = {{"match", rule.match.size() == 1 ? Json(rule.match[0]) : Json(rule.match)},
                {"scope", rule.wish.text()}};
    if (!rule.wish.candidates.empty()) out["candidates"] = candidates_json(rule.wish);
    if (rule.wish.hold) out["hold"] = true;
    if (rule.strict) out["strict"] = *rule.strict;
    if (rule.mask.kind != MaskWish::Kind::leave) out["cpumask"] = rule.mask.text();
    if (!rule.expires.empty()) out["expires"] = rule.expires;
    if (!rule.evidence.empty()) out["evidence"] = rule.evidence;
    return out;
}

std::vector<std::string> homes_of(std::string_view key) {
    std::vector<std::string> out;
    for (const Setting& setting : settings())
        if (key == setting.key) out.push_back("in [" + setting.table + "]");
    const auto add = [&](const char* home, const Words& keys) {
        if (std::ranges::find(keys, key) != keys.end() || (&keys == &kTables && key == "host"))
            out.emplace_back(home);
    };
    add("in [[workqueue]]", kRuleKeys);
    add("in [[host]]", kHostKeys);
    add("in when of [[host]]", kWhenKeys);
    add("at the top level", kTables);
    return out;
}

}  // namespace wq
