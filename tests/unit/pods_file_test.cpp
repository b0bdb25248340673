// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/pods_file.h"

#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq {
namespace {

TEST(PodsFile, HoldsThePods) {
    const test::TempTree tree;
    const KernelPods pods{{Scope::smt, {{CpuSet::range(0, 1), 0}, {CpuSet::range(2, 3), 1}}},
                          {Scope::system, {{CpuSet::range(0, 3), -1}}}};
    ASSERT_TRUE(leave_pods(tree.path("pods.json"), pods));
    const auto found = find_pods(tree.path("pods.json"));
    ASSERT_TRUE(found);
    ASSERT_TRUE(*found) << found->error().text;
    EXPECT_EQ(**found, pods);
}

TEST(PodsFile, HoldsWhyThereAreNone) {
    const test::TempTree tree;
    ASSERT_TRUE(leave_pods(tree.path("pods.json"), fail("lockdown", 1)));
    const auto found = find_pods(tree.path("pods.json"));
    ASSERT_TRUE(found);
    ASSERT_FALSE(*found);
    EXPECT_EQ(found->error().text, "lockdown");
}

TEST(PodsFile, KeepsPodsWhenTheyCannotBeReadAgain) {
    test::TempTree tree;
    const std::string path = tree.path("pods.json");
    const KernelPods pods{{Scope::system, {{CpuSet{0, 1}, -1}}}};
    ASSERT_TRUE(leave_pods(path, pods));
    ASSERT_TRUE(leave_pods(path, fail("no memory")));
    auto found = find_pods(path);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ(**found, pods);

    const KernelPods others{{Scope::system, {{CpuSet{0, 1, 2}, -1}}}};
    ASSERT_TRUE(leave_pods(path, others));
    found = find_pods(path);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ(**found, others) << "pods that were read replace pods";

    tree.write("pods.json", "{");
    ASSERT_TRUE(leave_pods(path, fail("no memory")));
    found = find_pods(path);
    ASSERT_TRUE(found && !*found);
    EXPECT_EQ(found->error().text, "no memory") << "a broken file is not kept";
}

TEST(PodsFile, MayBeAbsent) {
    const test::TempTree tree;
    EXPECT_FALSE(find_pods(tree.path("pods.json")));
}

TEST(PodsFile, IsNotBelievedWhereItIsBroken) {
    for (const char* text :
         {"", "{", "[]", "{}", R"({"pods":{"cache":[{"cpus":"x","node":0}]}})",
          R"({"pods":{"cache":[{"cpus":"0"}]}})", R"({"pods":{"pool":[]}})", R"({"why":1})"}) {
        test::TempTree tree;
        tree.write("pods.json", text);
        const auto found = find_pods(tree.path("pods.json"));
        ASSERT_TRUE(found) << text;
        EXPECT_FALSE(*found) << text;
    }
}

}  // namespace
}  // namespace wq
