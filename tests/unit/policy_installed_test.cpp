// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/load_policy.h"

#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::Link;
using test::TempTree;

std::size_t rules(const TempTree& tree) {
    return load_installed_policy(tree.root(), {}, {}).value().rules.size();
}

TEST(InstalledPolicy, AnUninstalledTreeHasWhatTheShippedFileSays) {
    const TempTree tree{};
    const auto policy = load_installed_policy(tree.root(), {}, {});
    ASSERT_TRUE(policy);
    ASSERT_EQ(policy->rules.size(), 1U);
    EXPECT_EQ(policy->rules[0].match.at(0), "*");
    EXPECT_EQ(policy->rules[0].origin.text(), "built-in");
}

TEST(InstalledPolicy, AMaskedMainFileMeansNoRules) {
    EXPECT_EQ(rules(TempTree{Dir("etc/wq-tuned", {Link("wq-tuned.toml", "/dev/null")})}), 0U);
    EXPECT_EQ(rules(TempTree{Dir("etc/wq-tuned", {File("wq-tuned.toml")})}), 0U);
}

TEST(InstalledPolicy, DropInsComeBeforeTheBuiltInRule) {
    const TempTree tree{
        Dir("etc/wq-tuned/wq-tuned.toml.d", {File("a.toml", "[[workqueue]]\nmatch = \"w\"\n")})};
    const auto policy = load_installed_policy(tree.root(), {}, {});
    ASSERT_TRUE(policy);
    ASSERT_EQ(policy->rules.size(), 2U);
    EXPECT_EQ(policy->rules[0].match.at(0), "w");
    EXPECT_EQ(policy->rules[1].match.at(0), "*");
}

}  // namespace
}  // namespace wq
