// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "kernel/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::Link;
using test::TempTree;
using testing::HasSubstr;

struct stat stat_of(const std::string& path) {
    struct stat st = {};
    EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
    return st;
}

TEST(ReplaceFile, MakesAFileThatOthersMayRead) {
    const TempTree tree;
    ASSERT_TRUE(replace_file(tree.path("a"), "text\n"));
    EXPECT_EQ(tree.read("a"), "text\n");
    EXPECT_EQ(stat_of(tree.path("a")).st_mode & 07777, 0644U);
    EXPECT_FALSE(tree.exists("a.new"));
}

TEST(ReplaceFile, IsARenameSoThatNoReaderSeesHalfAFile) {
    const TempTree tree{File("a", "old")};
    const ino_t before = stat_of(tree.path("a")).st_ino;
    ASSERT_TRUE(replace_file(tree.path("a"), std::string(1 << 20, 'x')));
    EXPECT_NE(stat_of(tree.path("a")).st_ino, before);
    EXPECT_EQ(tree.read("a").size(), std::size_t{1} << 20);
}

TEST(ReplaceFile, WritesOverWhatAKilledDaemonLeft) {
    const TempTree tree{File("a", "old"), File("a.new", "half of a long fi")};
    ASSERT_TRUE(replace_file(tree.path("a"), "new"));
    EXPECT_EQ(tree.read("a"), "new");
    EXPECT_FALSE(tree.exists("a.new"));
}

TEST(ReplaceFile, SaysWhichFileCouldNotBeMade) {
    const TempTree tree;
    const auto done = replace_file(tree.path("no/such/a"), "text");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ENOENT);
    EXPECT_THAT(done.error().text, HasSubstr(tree.path("no/such/a")));
}

TEST(ReplaceFile, LeavesTheOldFileAndNoOtherAfterAnError) {
    const TempTree tree{Dir("folder", {File("kept", "kept")})};
    const auto done = replace_file(tree.path("folder"), "text");
    ASSERT_FALSE(done);
    EXPECT_EQ(tree.read("folder/kept"), "kept");
    EXPECT_FALSE(tree.exists("folder.new"));
}

TEST(ReplaceFile, DoesNotFollowALinkThatSomebodyPlanted) {
    const TempTree tree{File("victim", "precious"), Link("a.new", "victim")};
    EXPECT_FALSE(replace_file(tree.path("a"), "text"));
    EXPECT_EQ(tree.read("victim"), "precious");
}

TEST(PublishFile, IsForEverybodyWhateverTheUmask) {
    const TempTree tree{File("a", "old", 0600)};
    const mode_t before = ::umask(0077);
    const auto done = publish_file(tree.path("a"), "text\n");
    ::umask(before);
    ASSERT_TRUE(done);
    EXPECT_EQ(tree.read("a"), "text\n");
    EXPECT_EQ(stat_of(tree.path("a")).st_mode & 07777, 0644U);
    EXPECT_FALSE(tree.exists("a.new"));
}

// A folder of metrics may be somebody else's.
TEST(PublishFile, NeitherFollowsNorKeepsWhatSomebodyPlanted) {
    const TempTree tree{File("victim", "precious"), Link("a.new", "victim"), Link("b", "victim")};
    EXPECT_TRUE(publish_file(tree.path("a"), "text"));
    EXPECT_TRUE(publish_file(tree.path("b"), "text"));
    EXPECT_EQ(tree.read("victim"), "precious");
    EXPECT_EQ(tree.read("a"), "text");
    EXPECT_EQ(tree.read("b"), "text");
    EXPECT_TRUE(S_ISREG(stat_of(tree.path("b")).st_mode));
}

TEST(PublishFile, LeavesTheOldFileAndNoOtherAfterAnError) {
    const TempTree tree{Dir("folder", {File("kept", "kept")})};
    EXPECT_FALSE(publish_file(tree.path("folder"), "text"));
    EXPECT_EQ(tree.read("folder/kept"), "kept");
    EXPECT_FALSE(tree.exists("folder.new"));
    const auto done = publish_file(tree.path("no/such/a"), "text");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ENOENT);
    EXPECT_THAT(done.error().text, HasSubstr(tree.path("no/such/a")));
}

TEST(ReadFile, RefusesMoreThanItsLimit) {
    const TempTree tree{File("a", std::string(100, 'x'))};
    EXPECT_EQ(read_file(tree.path("a"), 100)->size(), 100U);
    const auto over = read_file(tree.path("a"), 99);
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, EFBIG);
    EXPECT_THAT(over.error().text, HasSubstr(tree.path("a")));
}

}  // namespace
}  // namespace wq
