// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy_tables.h"

#include <fmt/format.h>

#include <array>

namespace wq {
namespace {

constexpr std::array kModes = {Mode::observe, Mode::guard, Mode::tune};
constexpr std::array kKeeps = {Keep::unless_regressed, Keep::if_improved};
constexpr std::size_t kMaxMatch = 255;  // a workqueue's name has at most 31

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

std::optional<ScopeWish> read_wish(TomlTable& table) {
    const auto word = table.word("scope", wish_words());
    if (!word) return std::nullopt;
    if (const auto scope = scope_named(*word)) return ScopeWish{ScopeWish::Kind::fixed, *scope};
    return ScopeWish{*word == "leave" ? ScopeWish::Kind::leave : ScopeWish::Kind::automatic, {}};
}

// node_exporter reads the files of a folder whose names end so. One without a name would be hidden.
bool is_textfile(std::string_view path) {
    constexpr std::string_view kEnd = ".prom";
    return path.starts_with('/') && path.ends_with(kEnd) && !path.ends_with("/.prom");
}

}  // namespace

void PolicyTables::read(TomlTable& top) {
    if (auto table = top.table("daemon")) read_daemon(*table);
    if (auto table = top.table("shard")) read_shard(*table);
    if (auto table = top.table("default_scope")) read_default_scope(*table);
    if (auto table = top.table("judge")) {
        judge_.read(*table, text_);
        finish(*table, "judge");
    }
    if (auto table = top.table("metrics")) read_metrics(*table);
    read_rules(top);
}

void PolicyTables::read_daemon(TomlTable& table) {
    if (const auto mode = read_choice(table, "mode", kModes)) policy_.mode = *mode;
    if (const auto word = table.word("on_exit", {"restore", "keep"})) policy_.keep_on_exit = *word == "keep";
    if (const auto flag = table.flag("apply_unjudged")) policy_.apply_unjudged = *flag;
    if (const auto keep = read_choice(table, "keep", kKeeps)) policy_.keep = *keep;
    finish(table, "daemon");
}

void PolicyTables::read_shard(TomlTable& table) {
    if (const auto size = table.number("size", 1, kMaxShardSize)) policy_.shard_size = *size;
    finish(table, "shard");
}

void PolicyTables::read_default_scope(TomlTable& table) {
    auto& target = policy_.default_scope;
    if (const auto flag = table.flag("manage")) target.manage = *flag;
    if (const auto wish = read_wish(table)) target.wish = *wish;
    for (const char* key : {"manage", "scope"})
        if (table.has(key)) target.origin = origin(table.place_of(key));
    finish(table, "default_scope");
}

void PolicyTables::read_metrics(TomlTable& table) {
    if (const auto path = table.scalar("textfile")) {
        if (path->empty() || is_textfile(*path))
            policy_.metrics.textfile = *path;
        else
            table.refuse("textfile",
                         "textfile must be an absolute path that ends in \".prom\", or empty for none");
    }
    finish(table, "metrics");
}

// Notes where each key of a TABLE that was read stands.
void PolicyTables::finish(TomlTable& table, const std::string& name) {
    const std::string prefix = name + ".";
    for (const std::string& key : table.known_keys())
        policy_.origins[prefix + key] = origin(table.place_of(key));
    table.refuse_the_rest();
}

void PolicyTables::read_rules(TomlTable& top) {
    auto tables = top.tables("workqueue");
    if (tables.size() > kMaxRules) {
        top.error(tables[kMaxRules].place(), fmt::format("more than {} rules", kMaxRules));
        return;
    }
    std::vector<WorkqueueRule> rules;
    rules.reserve(tables.size());
    for (TomlTable& table : tables) rules.push_back(read_rule(table));
    policy_.rules.insert(policy_.rules.begin(), rules.begin(), rules.end());  // latest source first
}

WorkqueueRule PolicyTables::read_rule(TomlTable& table) {
    WorkqueueRule rule;
    rule.match = read_match(table);
    rule.wish = read_wish(table).value_or(ScopeWish{});
    rule.strict = table.flag("strict");
    rule.origin = origin(table.place());
    table.refuse_the_rest();
    return rule;
}

std::string PolicyTables::read_match(TomlTable& table) {
    const auto match = table.string("match");
    if (!table.has("match"))
        table.error(table.place(), "a rule needs a match, such as match = \"kcryptd-*\"");
    if (match) matches_.push_back({*match, &text_, table.place_of("match")});
    if (match && match->size() > kMaxMatch)
        table.error(table.place_of("match"), fmt::format("match is longer than {} bytes", kMaxMatch));
    return match.value_or("");
}

}  // namespace wq
