// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// Affinity scopes, finest first (kernel/workqueue.c, wq_affn_names), so `a < b` means a is finer than b.
enum class Scope : std::uint8_t { cpu, smt, cache_shard, cache, numa, system };

inline constexpr std::array kAllScopes = {Scope::cpu,   Scope::smt,  Scope::cache_shard,
                                          Scope::cache, Scope::numa, Scope::system};

// Cores in a shard of `cache_shard` without the boot option workqueue.cache_shard_size= (kernel/workqueue.c,
// wq_cache_shard_size).
inline constexpr unsigned kKernelShardSize = 8;

// The kernel's word for SCOPE.
std::string_view name_of(Scope scope);
std::optional<Scope> scope_named(std::string_view word);
// Parses "cpu,smt,cache": any order, at least one, no duplicates. Returns them finest first.
Result<std::vector<Scope>> parse_scopes(std::string_view text);

// Content of an affinity_scope file: the first word ("default", "smt", ...), which we save and restore, and
// the scope that it means. "default (cache)" -> {"default", cache}.
struct ScopeFile {
    std::string word;
    std::optional<Scope> effective;  // empty if we do not know the kernel's scope

    friend bool operator==(const ScopeFile&, const ScopeFile&) = default;
};
Result<ScopeFile> parse_scope_file(std::string_view text);

// Target name for the module parameter default_affinity_scope. No workqueue has this name.
inline constexpr const char* kDefaultTarget = "@default";

enum class Kind : std::uint8_t { unbound, ordered, per_cpu, default_scope };
std::string_view name_of(Kind kind);  // "unbound", "ordered", "per-cpu", "default"

// One workqueue's sysfs directory (or the module parameter), read at one moment.
struct Workqueue {
    std::string name;
    Kind kind = Kind::unbound;
    bool unread = false;         // a file exists but could not be read this time
    std::optional<bool> strict;  // affinity_strict; empty if the file does not exist
    ino_t inode = 0;             // a different inode is a different workqueue, even with the same name
    ScopeFile scope;
    CpuSet effective;         // cpumask within the unbound mask: the CPUs that its pods divide
    std::string untouchable;  // why it can never be planned; empty if it can
};

}  // namespace wq
