// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>

#include "base/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::Link;
using test::TempTree;
using testing::HasSubstr;

// ---- replace file

struct stat stat_of(const std::string& path) {
    struct stat st = {};
    EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
    return st;
}

// The folder of the metrics may belong to another user.
TEST(WrittenFiles, AreForEverybodyWhateverTheUmaskAndNotWhatSomebodyPlanted) {
    for (const auto write : {+[](const std::string& path) { return replace_file(path, "text"); },
                             +[](const std::string& path) { return publish_file(path, "text"); }}) {
        const TempTree tree{File("victim", "precious"), Link("a.new", "victim"), Link("b", "victim"),
                            File("c", "old", 0600)};
        for (const char* name : {"a", "b", "c"}) {
            const mode_t before = ::umask(0077);
            const auto done = write(tree.path(name));
            ::umask(before);
            EXPECT_TRUE(done);
            EXPECT_EQ(tree.read(name), "text");
            EXPECT_EQ(stat_of(tree.path(name)).st_mode, S_IFREG | 0644U);
        }
        EXPECT_EQ(tree.read("victim"), "precious");
        EXPECT_FALSE(tree.exists("a.new"));
    }
}

TEST(WrittenFiles, AnErrorNamesThemAndLeavesTheOldOneAndNoOther) {
    const TempTree tree{Dir("folder", {File("kept", "kept")})};
    for (const auto write : {+[](const std::string& path) { return replace_file(path, "text"); },
                             +[](const std::string& path) { return publish_file(path, "text"); },
                             +[](const std::string& path) { return write_output(path, "text"); }}) {
        EXPECT_FALSE(write(tree.path("folder")));
        EXPECT_EQ(tree.read("folder/kept"), "kept");
        EXPECT_FALSE(tree.exists("folder.new"));
        const auto done = write(tree.path("no/such/a"));
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, ENOENT);
        EXPECT_THAT(done.error().text, HasSubstr(tree.path("no/such/a")));
    }
}

TEST(WriteOutput, HasTheModeOfAnyNewFileOrKeepsThatOfTheOldOne) {
    const TempTree tree{Dir("out", {File("a", "old", 0600), File("b", "old", 0666)})};
    for (const mode_t mask : {022, 077, 002}) {
        const std::string file = tree.path("out/" + std::to_string(mask));
        const mode_t before = ::umask(mask);
        const auto done = write_output(file, "text\n");
        ::umask(before);
        ASSERT_TRUE(done) << done.error().text;
        EXPECT_EQ(stat_of(file).st_mode & 07777, 0666U & ~mask);
    }
    for (const char* name : {"out/a", "out/b"}) {
        const struct stat before = stat_of(tree.path(name));
        ASSERT_TRUE(write_output(tree.path(name), std::string(1 << 20, 'x')));
        EXPECT_EQ(stat_of(tree.path(name)).st_mode, before.st_mode);
        EXPECT_NE(stat_of(tree.path(name)).st_ino, before.st_ino) << "a rename";
        EXPECT_EQ(tree.read(name).size(), std::size_t{1} << 20);
    }
    EXPECT_THAT(names_or_none(tree.path("out")), testing::SizeIs(5));
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    ASSERT_EQ(::chown(tree.path("out/a").c_str(), 65534, 65533), 0);
    ASSERT_TRUE(write_output(tree.path("out/a"), "new"));
    EXPECT_EQ(stat_of(tree.path("out/a")).st_uid, 65534U);
    EXPECT_EQ(stat_of(tree.path("out/a")).st_gid, 65533U);
}

TEST(WriteOutput, LeavesWhatIsNoFileAndWhatIsBesideIt) {
    const TempTree tree{File("victim", "precious"),
                        Dir("out", {Link("a", "../victim"), Link("b.new", "../victim"), Dir("c", {})})};
    EXPECT_EQ(write_output(tree.path("out/a"), "text").error().code, EEXIST);
    EXPECT_EQ(write_output(tree.path("out/c"), "text").error().code, EEXIST);
    ASSERT_TRUE(write_output(tree.path("out/b"), "text"));
    EXPECT_EQ(tree.read("victim"), "precious");
    EXPECT_TRUE(S_ISLNK(stat_of(tree.path("out/b.new")).st_mode));
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
    EXPECT_THAT(names_or_none(tree.path("out")), testing::SizeIs(1));
}

TEST(ReadFile, RefusesMoreThanItsLimit) {
    const TempTree tree{File("a", std::string(100, 'x'))};
    EXPECT_EQ(read_file(tree.path("a"), 100)->size(), 100U);
    const auto over = read_file(tree.path("a"), 99);
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, EFBIG);
    EXPECT_THAT(over.error().text, HasSubstr(tree.path("a")));
}

// ---- read folder

// /proc/stat of a machine with many CPUs or interrupts is larger than kMaxFile.
TEST(ReadFirstLine, KeepsSpacesAndReadsNoFurther) {
    const std::string rest(kMaxFile + 1, 'x');
    const std::string most(kMaxFile, 'y');
    const std::pair<test::Entry, std::string> rows[] = {{File("two", " a name \nmore\n"), " a name "},
                                                        {File("one", "Y"), "Y"},
                                                        {File("none", "\nmore\n"), ""},
                                                        {File("short", "cpu 1 2\n" + rest), "cpu 1 2"},
                                                        {File("long", most + "\n" + rest), most},
                                                        {File("longer", most + "y\n"), ""},
                                                        {Dir("folder"), ""},
                                                        {File("large", rest), ""}};
    for (const auto& [entry, line] : rows)
        EXPECT_EQ(read_first_line(TempTree{entry}.path(entry.name)), line) << entry.name;
    EXPECT_EQ(read_first_line(TempTree().path("missing")), "");
}

TEST(NamesIn, NameTheFolderThatCannotBeRead) {
    const TempTree tree{File("file")};
    for (const auto& [name, code] : {std::pair{"missing", ENOENT}, {"file", ENOTDIR}}) {
        const auto names = names_in(tree.path(name));
        ASSERT_FALSE(names) << name;
        EXPECT_EQ(names.error().code, code);
        EXPECT_THAT(names.error().text, HasSubstr(tree.path(name)));
        EXPECT_THAT(names_or_none(tree.path(name)), testing::IsEmpty());
    }
}

}  // namespace
}  // namespace wq
