// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/workqueue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace wq {

std::string_view name_of(Scope scope) {
    static constexpr std::array<std::string_view, 6> kNames = {"cpu",   "smt",  "cache_shard",
                                                               "cache", "numa", "system"};
    return kNames.at(static_cast<std::size_t>(scope));
}

std::string_view name_of(Kind kind) {
    static constexpr std::array<std::string_view, 4> kNames = {"unbound", "ordered", "per-cpu", "default"};
    return kNames.at(static_cast<std::size_t>(kind));
}

std::optional<Scope> scope_named(std::string_view word) {
    for (Scope scope : kAllScopes)
        if (name_of(scope) == word) return scope;
    return std::nullopt;
}

Result<std::vector<Scope>> parse_scopes(std::string_view text) {
    std::vector<Scope> scopes;
    for (const std::string& word : split_at_commas(text)) {
        const auto scope = scope_named(word);
        if (!scope) return fail(fmt::format("'{}' is not a scope", word), EINVAL);
        if (std::find(scopes.begin(), scopes.end(), *scope) != scopes.end())
            return fail(fmt::format("'{}' is named twice", word), EINVAL);
        scopes.push_back(*scope);
    }
    std::sort(scopes.begin(), scopes.end());
    return scopes;
}

Result<ScopeFile> parse_scope_file(std::string_view text) {
    const auto is_word = [](std::string_view word) {
        return !word.empty() && word.size() <= 32 &&
               word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos;
    };
    text = text.substr(0, text.find('\n'));
    const auto space = text.find(' ');
    const auto word = text.substr(0, space);
    if (!is_word(word)) return fail("not an affinity scope", EINVAL);
    if (space == std::string_view::npos) return ScopeFile{std::string(word), scope_named(word)};
    if (word != "default") return fail("more than one word", EINVAL);
    const auto rest = text.substr(space + 1);
    if (rest.size() < 3 || rest.front() != '(' || rest.back() != ')' ||
        !is_word(rest.substr(1, rest.size() - 2)))
        return fail("not an affinity scope after 'default'", EINVAL);
    return ScopeFile{"default", scope_named(rest.substr(1, rest.size() - 2))};
}

}  // namespace wq
