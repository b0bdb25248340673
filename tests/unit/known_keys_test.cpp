// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the list of all keys with the keys that the readers of the tables accept. The readers list them in
// the error "unknown key ...; known keys: KEY, KEY, ...".
#include "policy/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "policy/load_policy.h"
#include "temp_tree.h"

namespace wq {
namespace {

// The keys accepted in the table of TEXT that has the unknown key zzz.
std::vector<std::string> known_in(const std::string& text) {
    const test::TempTree tree{test::File("policy.toml", text)};
    const auto policy = load_policy({tree.path("policy.toml")});
    if (policy) return {};
    const std::string kList = "; known keys: ";
    for (const PolicyError& error : policy.error()) {
        const auto at = error.message.find(kList);
        if (at == std::string::npos) continue;
        std::istringstream words(error.message.substr(at + kList.size()));
        std::vector<std::string> out;
        for (std::string word; words >> word;) out.push_back(word.substr(0, word.find(',')));
        return out;
    }
    return {};
}

TEST(KnownKeys, AreWhatTheTablesAskFor) {
    const std::vector<std::pair<std::string, std::string>> tables = {
        {"at the top level", "zzz = 1"},
        {"in [daemon]", "daemon.zzz = 1"},
        {"in [shard]", "shard.zzz = 1"},
        {"in [judge]", "judge.zzz = 1"},
        {"in [metrics]", "metrics.zzz = 1"},
        {"in [default_scope]", "default_scope.zzz = 1"},
        {"in [default_mask]", "default_mask.zzz = 1"},
        {"in [[workqueue]]", "[[workqueue]]\nmatch = '*'\nzzz = 1"},
        {"in [[host]]", "[[host]]\nname = 'a'\nzzz = 1"},
        {"in when of [[host]]", "[[host]]\nname = 'a'\nwhen.zzz = 1"},
    };
    for (const auto& [home, text] : tables) {
        const auto keys = known_in(text);
        EXPECT_FALSE(keys.empty()) << text;
        for (const std::string& key : keys) {
            const auto homes = homes_of(key);
            const bool is_table = home == "in [[host]]" && !homes.empty() && homes[0] == "at the top level";
            EXPECT_TRUE(is_table || std::ranges::find(homes, home) != homes.end()) << key << " " << home;
        }
    }
}

TEST(KnownKeys, NoOthersAreKnown) {
    for (const char* key : {"", " ", "mod", "mode keep", "modes", "counter", "zzz"})
        EXPECT_TRUE(homes_of(key).empty()) << key;
}

}  // namespace
}  // namespace wq
