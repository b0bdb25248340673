// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/scope.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

TEST(ScopeFile, KeepsTheFirstWordAndItsMeaning) {
    EXPECT_EQ(parse_scope_file("default (cache_shard)\n"), (ScopeFile{"default", Scope::cache_shard}));
    EXPECT_EQ(parse_scope_file("smt\n"), (ScopeFile{"smt", Scope::smt}));
    EXPECT_EQ(parse_scope_file("default (cluster)\n"), (ScopeFile{"default", std::nullopt}));
}

TEST(ScopeFile, RefusesGarbage) {
    for (const char* text :
         {"", "\n", "smt smt", "default ()", "default cache", "default (cache", "SMT", "../x"})
        EXPECT_FALSE(parse_scope_file(text)) << text;
}

TEST(Scopes, ListsAreSortedAndStrict) {
    EXPECT_EQ(*parse_scopes("cache,cpu"), (std::vector{Scope::cpu, Scope::cache}));
    for (const char* text : {"", "cpu,", "cpu,cpu", "caches", "default"})
        EXPECT_FALSE(parse_scopes(text)) << text;
}

}  // namespace
}  // namespace wq
