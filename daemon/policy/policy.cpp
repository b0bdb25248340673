// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/text.h"

namespace wq {

std::string PolicyError::text() const {
    if (line == 0) return fmt::format("{}: {}", file, message);
    return fmt::format("{}:{}:{}: {}", file, line, column, message);
}

std::string PolicyError::underlined() const {
    if (line == 0 || excerpt.empty()) return text();
    std::string blank;  // as wide as what is before the column: a multi-byte character is one
    for (const char byte : excerpt.substr(0, column - 1))
        if (!is_utf8_continuation(byte)) blank += byte == '\t' ? '\t' : ' ';
    return fmt::format("{}\n{:>5} | {}\n{:>5} | {}^", text(), line, excerpt, "", blank);
}

bool is_match(const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string Origin::text() const {
    return file.empty() ? "built-in" : fmt::format("{}:{}", file, line);
}

std::string ScopeWish::text() const {
    if (kind == Kind::fixed) return std::string(name_of(scope));
    return kind == Kind::plan ? "plan" : kind == Kind::leave ? "leave" : "auto";
}

std::string MaskWish::text() const {
    if (kind == Kind::fixed) return cpus.list();
    return kind == Kind::leave ? "leave" : "housekeeping";
}

std::string_view name_of(Mode mode) {
    return mode == Mode::tune ? "tune" : "observe";
}

bool Hours::contains(unsigned minute_of_day) const {
    if (begin < end) return minute_of_day >= begin && minute_of_day < end;
    return minute_of_day >= begin || minute_of_day < end;
}

bool WorkqueueRule::matches(const std::string& name) const {
    return std::ranges::any_of(match, [&](const auto& pattern) { return is_match(pattern, name); });
}

bool WorkqueueRule::names(const std::string& name) const {
    return std::ranges::any_of(
        match, [&](const auto& pattern) { return pattern != "*" && is_match(pattern, name); });
}

bool Policy::expire(std::int64_t now) {
    bool changed = false;
    // "2027-01-31": dates in this format sort as text.
    const auto look_at = [&changed, today = utc_text(now).substr(0, 10)](bool& expired,
                                                                         const std::string& last_day) {
        const bool over = !last_day.empty() && last_day < today;
        changed = changed || over != expired;
        expired = over;
    };
    for (WorkqueueRule& rule : rules) look_at(rule.expired, rule.expires);
    for (DefaultScopeTable& table : default_scope_tables) look_at(table.expired, table.keys.expires);
    if (changed && !default_scope_tables.empty()) merge_default_scope();
    return changed;
}

void Policy::merge_default_scope() {
    default_scope = {};
    std::erase_if(origins, [](const auto& item) { return item.first.starts_with("default_scope."); });
    for (const auto& [keys, places, expired] : default_scope_tables) {
        if (expired) continue;
        const auto has = [&places = places](const std::string& key) {
            return places.contains("default_scope." + key);
        };
        const bool wish = has("scope") || has("candidates") || has("hold");
        const bool decides = wish || has("manage");
        if (has("manage")) default_scope.manage = keys.manage;
        if (wish) default_scope.wish = keys.wish;
        if (decides) default_scope.origin = keys.origin;
        if (decides || has("expires")) default_scope.expires = keys.expires;
        if (decides || has("evidence")) default_scope.evidence = keys.evidence;
        for (const auto& [key, origin] : places) origins[key] = origin;
    }
}

std::vector<Origin> Policy::expired_rules() const {
    std::vector<Origin> out;
    for (const WorkqueueRule& rule : rules)
        if (rule.expired) out.push_back(rule.origin);
    for (const DefaultScopeTable& table : default_scope_tables)
        if (table.expired) out.push_back(table.keys.origin);
    return out;
}

bool Policy::wants_masks() const {
    const auto wants = [](const MaskWish& wish) { return wish.kind != MaskWish::Kind::leave; };
    return wants(default_mask) || std::ranges::any_of(rules, [&](const WorkqueueRule& rule) {
               return !rule.expired && wants(rule.mask);
           });
}

const WorkqueueRule* Policy::rule_for(const std::string& name) const {
    for (const WorkqueueRule& rule : rules)
        if (!rule.expired && rule.matches(name)) return &rule;
    return nullptr;
}

}  // namespace wq
