// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::Link;
using test::TempTree;
using testing::HasSubstr;
using testing::SizeIs;

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

// The folder of the metrics may belong to another user.
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

// The files in TREE's folder "out".
std::vector<std::string> names_in_out(const TempTree& tree) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(tree.path("out")))
        out.push_back(entry.path().filename());
    return out;
}

TEST(WriteOutput, HasTheModeOfAnyNewFile) {
    const TempTree tree{Dir("out", {})};
    for (const mode_t mask : {022, 077, 002}) {
        const std::string file = tree.path("out/" + std::to_string(mask));
        const mode_t before = ::umask(mask);
        const auto done = write_output(file, "text\n");
        ::umask(before);
        ASSERT_TRUE(done) << done.error().text;
        EXPECT_EQ(stat_of(file).st_mode & 07777, 0666U & ~mask);
    }
    EXPECT_THAT(names_in_out(tree), SizeIs(3));
}

TEST(WriteOutput, KeepsTheOwnerOfTheFileThatItReplaces) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    const TempTree tree{File("a", "theirs")};
    const std::string path = tree.path("a");
    ASSERT_EQ(::chown(path.c_str(), 65534, 65533), 0);
    ASSERT_TRUE(write_output(path, "new"));
    EXPECT_EQ(tree.read("a"), "new");
    EXPECT_EQ(stat_of(path).st_uid, 65534U);
    EXPECT_EQ(stat_of(path).st_gid, 65533U);
}

TEST(WriteOutput, KeepsTheModeOfTheFileThatItReplaces) {
    const TempTree tree{Dir("out", {File("a", "old", 0600), File("b", "old", 0666)})};
    for (const char* name : {"out/a", "out/b"}) {
        const mode_t mode = stat_of(tree.path(name)).st_mode;
        const ino_t inode = stat_of(tree.path(name)).st_ino;
        ASSERT_TRUE(write_output(tree.path(name), std::string(1 << 20, 'x')));
        EXPECT_EQ(stat_of(tree.path(name)).st_mode, mode);
        EXPECT_NE(stat_of(tree.path(name)).st_ino, inode) << "a rename";
        EXPECT_EQ(tree.read(name).size(), std::size_t{1} << 20);
    }
    EXPECT_THAT(names_in_out(tree), SizeIs(2));
}

TEST(WriteOutput, LeavesWhatIsNoFileAndWhatIsBesideIt) {
    const TempTree tree{File("victim", "precious"),
                        Dir("out", {Link("a", "../victim"), Link("b.new", "../victim"), Dir("c", {})})};
    EXPECT_EQ(write_output(tree.path("out/a"), "text").error().code, EEXIST);
    EXPECT_EQ(write_output(tree.path("out/c"), "text").error().code, EEXIST);
    ASSERT_TRUE(write_output(tree.path("out/b"), "text"));
    EXPECT_EQ(tree.read("victim"), "precious");
    EXPECT_TRUE(S_ISLNK(stat_of(tree.path("out/b.new")).st_mode));
    const auto done = write_output(tree.path("no/such/a"), "text");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ENOENT);
    EXPECT_THAT(done.error().text, HasSubstr(tree.path("no/such/a")));
}

// RLIMIT_FSIZE makes the write fail.
TEST(WriteOutput, LeavesTheOldFileAndNoOtherAfterAnError) {
    const TempTree tree{Dir("out", {File("a", "old")})};
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{4096, before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto done = write_output(tree.path("out/a"), std::string(1 << 20, 'x'));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, EFBIG);
    EXPECT_EQ(tree.read("out/a"), "old");
    EXPECT_THAT(names_in_out(tree), SizeIs(1));
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
