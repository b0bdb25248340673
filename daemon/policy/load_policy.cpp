// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "policy/toml_table.h"

namespace wq {
namespace {

// Not yet Mode::tune: without trials it would promise what nothing does.
constexpr std::array kModes = {Mode::observe, Mode::guard};
constexpr std::size_t kMaxMatch = 255;  // a workqueue's name has at most 31

std::vector<std::string_view> mode_words() {
    std::vector<std::string_view> words(kModes.size());
    std::transform(kModes.begin(), kModes.end(), words.begin(), [](Mode mode) { return name_of(mode); });
    return words;
}

std::vector<std::string_view> wish_words() {
    std::vector<std::string_view> words{"auto", "leave"};
    for (Scope scope : kAllScopes) words.push_back(name_of(scope));
    return words;
}

std::optional<Mode> read_mode(TomlTable& table) {
    const auto word = table.word("mode", mode_words());
    for (Mode mode : kModes)
        if (word == name_of(mode)) return mode;
    return std::nullopt;
}

std::optional<ScopeWish> read_wish(TomlTable& table) {
    const auto word = table.word("scope", wish_words());
    if (!word) return std::nullopt;
    if (const auto scope = scope_named(*word)) return ScopeWish{ScopeWish::Kind::fixed, *scope};
    return ScopeWish{*word == "leave" ? ScopeWish::Kind::leave : ScopeWish::Kind::automatic, {}};
}

// Reads one file into the policy that the files before it have made.
class FileReader {
  public:
    FileReader(const SourceText& text, Policy& policy, PolicyErrors& errors)
        : text_(text), policy_(policy), errors_(errors) {}

    void read() {
        auto top = TomlTable::parse(text_, errors_);
        if (!top) return;
        if (auto table = top->table("daemon")) read_daemon(*table);
        if (auto table = top->table("shard")) read_shard(*table);
        if (auto table = top->table("default_scope")) read_default_scope(*table);
        read_rules(*top);
        for (const char* later : {"judge", "host", "metrics"}) top->unsupported(later);
        top->refuse_the_rest();
    }

  private:
    void read_daemon(TomlTable& table) {
        if (const auto mode = read_mode(table)) policy_.mode = *mode;
        if (const auto word = table.word("on_exit", {"restore", "keep"}))
            policy_.keep_on_exit = *word == "keep";
        if (const auto flag = table.flag("apply_unjudged")) policy_.apply_unjudged = *flag;
        table.unsupported("keep");
        table.refuse_the_rest();
    }

    void read_shard(TomlTable& table) {
        if (const auto size = table.number("size", 1, kMaxShardSize)) policy_.shard_size = *size;
        table.refuse_the_rest();
    }

    void read_default_scope(TomlTable& table) {
        auto& target = policy_.default_scope;
        if (const auto flag = table.flag("manage")) target.manage = *flag;
        if (const auto wish = read_wish(table)) target.wish = *wish;
        for (const char* key : {"manage", "scope"})
            if (table.has(key)) target.origin = origin(table.place_of(key));
        table.refuse_the_rest();
    }

    void read_rules(TomlTable& top) {
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

    WorkqueueRule read_rule(TomlTable& table) {
        WorkqueueRule rule;
        rule.match = read_match(table);
        rule.wish = read_wish(table).value_or(ScopeWish{});
        rule.strict = table.flag("strict");
        rule.origin = origin(table.place());
        table.refuse_the_rest();
        return rule;
    }

    std::string read_match(TomlTable& table) {
        const auto match = table.string("match");
        if (!table.has("match"))
            table.error(table.place(), "a rule needs a match, such as match = \"kcryptd-*\"");
        if (match && match->size() > kMaxMatch)
            table.error(table.place_of("match"), fmt::format("match is longer than {} bytes", kMaxMatch));
        return match.value_or("");
    }

    [[nodiscard]] Origin origin(Place place) const { return {text_.file(), place.line}; }

    const SourceText& text_;
    Policy& policy_;
    PolicyErrors& errors_;
};

// toml11's tables know no order; people read from top to bottom.
void sort_by_place(PolicyErrors& errors) {
    std::stable_sort(errors.begin(), errors.end(), [](const PolicyError& a, const PolicyError& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
}

PolicyErrors read_into(Policy& policy, const std::string& file) {
    const auto text = read_policy_file(file);
    if (!text) return text.error();
    PolicyErrors errors;
    FileReader(*text, policy, errors).read();
    sort_by_place(errors);
    return errors;
}

}  // namespace

tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files) {
    Policy policy;
    PolicyErrors errors;
    for (const std::string& file : files) {
        const PolicyErrors mistakes = read_into(policy, file);
        errors.insert(errors.end(), mistakes.begin(), mistakes.end());
    }
    if (!errors.empty()) return tl::unexpected(errors);
    return policy;
}

}  // namespace wq
