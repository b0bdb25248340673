// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "policy/policy.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::Entry;
using test::File;
using test::Link;
using test::TempTree;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kText = "[shard]\n";

// The files in force below TREE, without its root.
std::vector<std::string> in_force(const TempTree& tree) {
    std::vector<std::string> files = policy_files(tree.root());
    for (std::string& file : files) file.erase(0, tree.root().size());
    return files;
}

std::string only_error(const TempTree& tree) {
    const auto policy = load_policy(policy_files(tree.root()));
    return policy ? "no error" : policy.error().size() > 1 ? "several" : policy.error()[0].text();
}

TEST(PolicyFiles, NoneAtAllMeansDefaultsAndNothingManaged) {
    const TempTree tree;
    EXPECT_THAT(in_force(tree), IsEmpty());
    const auto policy = load_policy({});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->mode, Mode::guard);
    EXPECT_EQ(policy->shard_size, 8U);
    EXPECT_FALSE(policy->keep_on_exit || policy->apply_unjudged || policy->default_scope.manage);
    EXPECT_EQ(policy->default_scope.origin.text(), "built-in");
    EXPECT_EQ(policy->rule_for("kcryptd"), nullptr);
}

TEST(PolicyFiles, TheMainFileIsTheFirstOfEtcRunAndUsrLib) {
    TempTree tree{File("usr/lib/wq-tuned/wq-tuned.toml", kText)};
    EXPECT_THAT(in_force(tree), ElementsAre("/usr/lib/wq-tuned/wq-tuned.toml"));
    tree.add(File("run/wq-tuned/wq-tuned.toml", kText));
    EXPECT_THAT(in_force(tree), ElementsAre("/run/wq-tuned/wq-tuned.toml"));
    tree.add(File("etc/wq-tuned/wq-tuned.toml", kText));
    EXPECT_THAT(in_force(tree), ElementsAre("/etc/wq-tuned/wq-tuned.toml"));
}

TEST(PolicyFiles, DropInsOfAllFoldersAreSortedByNameAndHideEachOther) {
    const TempTree tree{
        Dir("etc/wq-tuned/wq-tuned.toml.d", {File("20-b.toml", kText)}),
        Dir("run/wq-tuned/wq-tuned.toml.d", {File("10-a.toml", kText), File("20-b.toml", kText)}),
        Dir("usr/lib/wq-tuned",
            {File("wq-tuned.toml", kText),
             Dir("wq-tuned.toml.d", {File("10-a.toml", kText), File("30-c.toml", kText)})})};
    EXPECT_THAT(in_force(tree),
                ElementsAre("/usr/lib/wq-tuned/wq-tuned.toml", "/run/wq-tuned/wq-tuned.toml.d/10-a.toml",
                            "/etc/wq-tuned/wq-tuned.toml.d/20-b.toml",
                            "/usr/lib/wq-tuned/wq-tuned.toml.d/30-c.toml"));
}

TEST(PolicyFiles, EmptyFilesAndLinksToDevNullMask) {
    const TempTree tree{
        Dir("etc/wq-tuned", {Link("wq-tuned.toml", "/dev/null"),
                             Dir("wq-tuned.toml.d", {File("a.toml"), Link("b.toml", "/dev/null")})}),
        Dir("usr/lib/wq-tuned",
            {File("wq-tuned.toml", kText),
             Dir("wq-tuned.toml.d", {File("a.toml", kText), File("b.toml", kText), File("c.toml", kText)})})};
    EXPECT_THAT(in_force(tree), ElementsAre("/usr/lib/wq-tuned/wq-tuned.toml.d/c.toml"));
}

TEST(PolicyFiles, OtherNamesArePassedOver) {
    const TempTree tree{Dir("etc/wq-tuned/wq-tuned.toml.d",
                            {File(".a.toml", kText), File("a.toml~", kText), File("a.toml.dpkg-new", kText),
                             File(".toml", kText), File("README", kText)})};
    EXPECT_THAT(in_force(tree), IsEmpty());
}

TEST(PolicyFiles, WhatIsThereButCannotBeReadIsAnErrorThatNamesIt) {
    const std::string drop_ins = "etc/wq-tuned/wq-tuned.toml.d";
    const std::vector<std::pair<Entry, std::string>> cases = {
        {Link("etc/wq-tuned/wq-tuned.toml", "wq-tuned.toml"),
         "wq-tuned.toml: cannot be read: Too many levels"},
        {Link("etc/wq-tuned/wq-tuned.toml", "gone"), "wq-tuned.toml: cannot be read: No such file"},
        {Dir("etc/wq-tuned/wq-tuned.toml"), "wq-tuned.toml: not a regular file"},
        {Link("etc/wq-tuned/wq-tuned.toml", "/dev/zero"), "wq-tuned.toml: not a regular file"},
        {File("etc/wq-tuned/wq-tuned.toml", kText, 0646), "wq-tuned.toml: everyone may write to it"},
        {File("etc/wq-tuned/wq-tuned.toml", std::string((1 << 20) + 1, '\n')), "larger than 1 MiB"},
        {Link("etc/wq-tuned", "wq-tuned"), "Too many levels"},
        {Link(drop_ins + "/a.toml", "a.toml"), "a.toml: cannot be read: Too many levels"},
        {File(drop_ins, kText), "wq-tuned.toml.d/: cannot be read: Not a directory"},
        {Link(drop_ins, "gone"), "wq-tuned.toml.d/: cannot be read: No such file"},
    };
    for (const auto& [entry, message] : cases) {
        const TempTree tree{entry};
        const auto policy = load_policy(policy_files(tree.root()));
        ASSERT_FALSE(policy) << message;
        EXPECT_THAT(policy.error()[0].text(), HasSubstr(message));
        EXPECT_EQ(policy.error()[0].line, 0U);
    }
}

TEST(PolicyFiles, AFolderThatEveryoneMayWriteToIsAnErrorThatNamesIt) {
    const std::string drop_ins = "etc/wq-tuned/wq-tuned.toml.d";
    TempTree tree{File("etc/wq-tuned/wq-tuned.toml", kText), Dir(drop_ins)};
    EXPECT_EQ(only_error(tree), "no error");
    for (const mode_t mode : {0757U, 01777U}) {  // the sticky bit keeps nobody from adding a file
        tree.mode(drop_ins, mode);
        EXPECT_EQ(only_error(tree),
                  tree.path(drop_ins) + "/: everyone may write to it, so it is not trusted (chmod o-w)");
    }
    tree.mode(drop_ins, 0755);
    tree.mode("etc/wq-tuned", 0777);
    EXPECT_EQ(only_error(tree), tree.path("etc/wq-tuned/wq-tuned.toml") +
                                    ": everyone may write to its folder, so it is not trusted (chmod o-w)");
    tree.mode("etc/wq-tuned", 01777);
    EXPECT_EQ(only_error(tree), "no error");
}

TEST(PolicyFiles, AFileThatMayNotBeReadIsAnErrorThatNamesIt) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
    const TempTree tree{File("etc/wq-tuned/wq-tuned.toml", kText, 0000)};
    EXPECT_THAT(only_error(tree), HasSubstr("wq-tuned.toml: cannot be read: Permission denied"));
}

// Whatever is read is a text or an error, never both halves of two.
TEST(PolicyFiles, AFileThatChangesWhileItIsReadDoesNoHarm) {
    TempTree tree{File("a.toml")};
    std::string rules;
    for (int i = 0; i < 200; i++) rules += "[[workqueue]]\nmatch = \"" + std::to_string(i) + "\"\n";
    std::atomic<bool> done = false;
    std::thread writer([&] {
        for (bool whole = true; !done; whole = !whole) tree.write("a.toml", whole ? rules : "[shard]\nsize");
    });
    for (int i = 0; i < 200; i++) {
        const auto policy = load_policy({tree.path("a.toml")});
        if (policy)
            EXPECT_LE(policy->rules.size(), 200U);
        else
            EXPECT_FALSE(policy.error().empty());
    }
    done = true;
    writer.join();
}

TEST(PolicyFiles, AFifoDoesNotBlock) {
    TempTree tree{Dir("etc/wq-tuned")};
    ASSERT_EQ(::mkfifo(tree.path("etc/wq-tuned/wq-tuned.toml").c_str(), 0600), 0);
    EXPECT_THAT(only_error(tree), HasSubstr("not a regular file"));
}

TEST(PolicyFiles, LinksToFilesAreFollowed) {
    const TempTree tree{File("elsewhere.toml", "[shard]\nsize = 4\n"),
                        Link("etc/wq-tuned/wq-tuned.toml", "../../elsewhere.toml")};
    EXPECT_EQ(load_policy(policy_files(tree.root()))->shard_size, 4U);
}

}  // namespace
}  // namespace wq
