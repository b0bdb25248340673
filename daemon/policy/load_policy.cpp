// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "policy/judge_table.h"

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

// Reads one file into the policy that the files before it have made.
class FileReader {
  public:
    FileReader(const SourceText& text, Policy& policy, JudgeReader& judge, PolicyErrors& errors)
        : text_(text), policy_(policy), judge_(judge), errors_(errors) {}

    void read() {
        auto top = TomlTable::parse(text_, errors_);
        if (!top) return;
        if (auto table = top->table("daemon")) read_daemon(*table);
        if (auto table = top->table("shard")) read_shard(*table);
        if (auto table = top->table("default_scope")) read_default_scope(*table);
        if (auto table = top->table("judge")) judge_.read(*table, text_);
        read_rules(*top);
        for (const char* later : {"host", "metrics"}) top->unsupported(later);
        top->refuse_the_rest();
    }

  private:
    void read_daemon(TomlTable& table) {
        if (const auto mode = read_choice(table, "mode", kModes)) policy_.mode = *mode;
        if (const auto word = table.word("on_exit", {"restore", "keep"}))
            policy_.keep_on_exit = *word == "keep";
        if (const auto flag = table.flag("apply_unjudged")) policy_.apply_unjudged = *flag;
        if (const auto keep = read_choice(table, "keep", kKeeps)) policy_.keep = *keep;
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
    JudgeReader& judge_;
    PolicyErrors& errors_;
};

// toml11's tables know no order; people read from top to bottom.
void sort_by_place(PolicyErrors& errors) {
    std::stable_sort(errors.begin(), errors.end(), [](const PolicyError& a, const PolicyError& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
}

PolicyErrors read_into(Policy& policy, JudgeReader& judge, const std::string& file) {
    const auto text = read_policy_file(file);
    if (!text) return text.error();
    PolicyErrors errors;
    FileReader(*text, policy, judge, errors).read();
    sort_by_place(errors);
    return errors;
}

}  // namespace

tl::expected<Policy, PolicyErrors> load_policy(const std::vector<std::string>& files) {
    Policy policy;
    JudgeReader judge(policy.judge);
    PolicyErrors errors;
    for (const std::string& file : files) {
        const PolicyErrors mistakes = read_into(policy, judge, file);
        errors.insert(errors.end(), mistakes.begin(), mistakes.end());
    }
    if (errors.empty()) errors = judge.contradictions();
    if (!errors.empty()) return tl::unexpected(errors);
    return policy;
}

}  // namespace wq
