// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace wq {

// Affinity scopes, finest first (kernel/workqueue.c, wq_affn_names), so that < means "finer than".
enum class Scope { cpu, smt, cache_shard, cache, numa, system };

inline constexpr std::array kAllScopes = {Scope::cpu,   Scope::smt,  Scope::cache_shard,
                                          Scope::cache, Scope::numa, Scope::system};

// The word the kernel uses.
std::string_view name_of(Scope scope);
std::optional<Scope> scope_named(std::string_view word);
// "cpu,smt,cache": in any order, at least one, each once. Returned finest first.
Result<std::vector<Scope>> parse_scopes(std::string_view text);

// What an affinity_scope file says: the first word ("default", "smt", ...), which is what is saved and
// restored, and the scope that it means. "default (cache)" -> {"default", cache}.
struct ScopeFile {
    std::string word;
    std::optional<Scope> effective;  // empty where the kernel knows a scope that we do not

    friend bool operator==(const ScopeFile&, const ScopeFile&) = default;
};
Result<ScopeFile> parse_scope_file(std::string_view text);

}  // namespace wq
