// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/file_switcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include <cerrno>
#include <functional>
#include <set>

#include "ctl/lab/restore_left.h"
#include "fake_log.h"
#include "temp_tree.h"

namespace wq::ab {
namespace {

using test::Dir;
using test::File;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kPath = "/sys/value";

// One kernel file. A read may show the written value in another format.
class FakeFile : public ValueFiles {
  public:
    std::string content = "8\n";
    std::function<std::string(const std::string& value)> shows = [](const std::string& v) {
        return v + "\n";
    };
    std::function<void()> before_write = [] {};
    std::vector<std::string> writes;
    std::string refuses;  // writing this value fails with EINVAL
    int read_error = 0;

    [[nodiscard]] Result<std::string> read(const std::string& path) const override {
        if (read_error != 0) return fail_errno(path, read_error);
        return content;
    }
    Status write(const std::string& path, const std::string& value) override {
        before_write();
        if (value == refuses) return fail_errno(path + ": writing '" + value + "'", EINVAL);
        writes.push_back(value);
        content = shows(value);
        return {};
    }
};

class FileSwitcherTest : public testing::Test {
  protected:
    FileSwitcher switcher(std::vector<std::string> values) {
        return {file_, store_, kPath, std::move(values)};
    }
    std::optional<LeftFile> on_disk() {
        const auto left = store_.load();
        EXPECT_TRUE(left);
        return *left ? std::optional(std::get<LeftFile>(**left)) : std::nullopt;
    }
    // Restores the file like the guardian.
    bool put_back() {
        const Shell none = [](const std::string&) { return Status(fail("no command")); };
        return restore_left(file_, store_, none, log_, false);
    }
    void expect_back(const std::string& content) {
        EXPECT_TRUE(put_back());
        EXPECT_EQ(file_.content, content);
        EXPECT_FALSE(on_disk());
    }

    test::TempTree tree_;
    FakeFile file_;
    LeftStore store_{tree_.path("ab.json")};
    test::FakeLog log_;
};

TEST_F(FileSwitcherTest, TheOriginalIsOnDiskBeforeTheFirstWrite) {
    auto s = switcher({"16", "32"});
    unsigned seen = 0;
    file_.before_write = [&] {
        ASSERT_TRUE(on_disk());
        EXPECT_EQ(on_disk()->path, kPath);
        EXPECT_EQ(on_disk()->original, "8\n");
        seen++;
    };
    ASSERT_TRUE(s.begin());
    EXPECT_EQ(seen, 3U);
    EXPECT_THAT(file_.writes, ElementsAre("8", "16", "32")) << "its own first: it can be put back";
    expect_back("8\n");
}

TEST_F(FileSwitcherTest, WritesWhatIsInPlaceToo) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    file_.writes.clear();
    for (const unsigned arm : {0U, 0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(file_.writes, ElementsAre("16", "16", "32"));
    EXPECT_TRUE(s.check());
}

TEST_F(FileSwitcherTest, MoreThanTwoValuesAreArmsToo) {
    auto s = switcher({"16", "32", "64", "128"});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {3U, 1U, 2U, 0U}) ASSERT_TRUE(s.to(arm));
    EXPECT_EQ(file_.content, "16\n");
    expect_back("8\n");
}

TEST_F(FileSwitcherTest, TheWordInBracketsIsTheValue) {
    const auto shows = [](const std::string& value) {
        std::string out;
        for (const std::string word : {"none", "mq-deadline", "kyber"})
            out += (word == value ? "[" + word + "]" : word) + " ";
        return out + "\n";
    };
    file_.shows = shows;
    file_.content = shows("mq-deadline");
    auto s = switcher({"none", "kyber"});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_EQ(file_.content, "none mq-deadline [kyber] \n");
    expect_back(shows("mq-deadline"));
}

// When a scheduler is written, the block layer loads its module: from then on the file shows more choices.
TEST_F(FileSwitcherTest, TheChoicesBesideItMayChange) {
    std::set<std::string> loaded{"none", "mq-deadline"};
    const auto shows = [&](const std::string& value) {
        loaded.insert(value);
        std::string out;
        for (const std::string& word : loaded) out += (word == value ? "[" + word + "]" : word) + " ";
        return out + "\n";
    };
    file_.shows = shows;
    file_.content = shows("mq-deadline");
    auto s = switcher({"none", "bfq"});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 0U}) ASSERT_TRUE(s.to(arm));
    EXPECT_TRUE(s.check());
    expect_back("bfq [mq-deadline] none \n");
}

TEST_F(FileSwitcherTest, ATextMayHaveAWordInBracketsThatIsNoChoice) {
    file_.content = "core [%p]\n";
    auto s = switcher({"a", "b"});
    ASSERT_TRUE(s.begin());
    expect_back("core [%p]\n");
}

TEST_F(FileSwitcherTest, AKernelMayShowAnotherWordThanWasWritten) {
    file_.shows = [](const std::string& v) { return v == "1" || v == "Y" ? "Y\n" : "N\n"; };
    file_.content = "N\n";
    auto s = switcher({"0", "1"});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_EQ(file_.content, "Y\n");
    expect_back("N\n");
}

TEST_F(FileSwitcherTest, TwoValuesThatAreOneSettingAreRefused) {
    file_.shows = [](const std::string& v) { return v == "1" || v == "Y" ? "Y\n" : "N\n"; };
    file_.content = "N\n";
    const auto begun = switcher({"1", "Y"}).begin();
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().text,
              "/sys/value: '1' and 'Y' are the same setting: the file shows 'Y' after each");
    expect_back("N\n");
}

TEST_F(FileSwitcherTest, AValueThatTheFileDoesNotTakeEndsItBeforeTheFirstRun) {
    file_.refuses = "many";
    const auto begun = switcher({"16", "many"}).begin();
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().text, "/sys/value: writing 'many': Invalid argument");
    EXPECT_EQ(begun.error().code, EINVAL);
    expect_back("8\n");
}

TEST_F(FileSwitcherTest, AFileThatDoesNotTakeItsOwnValueIsNotChanged) {
    file_.content = "default (cache)\n";
    file_.refuses = "default (cache)";
    EXPECT_FALSE(switcher({"smt", "cpu"}).begin());
    EXPECT_THAT(file_.writes, ElementsAre());
    expect_back("default (cache)\n");
}

TEST_F(FileSwitcherTest, AFileThatMakesAnotherValueOfItsOwnIsRefused) {
    file_.shows = [](const std::string& v) { return v + v + "\n"; };
    const auto begun = switcher({"16", "32"}).begin();
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().text, HasSubstr("writing the original value '8' does not restore it"));
    EXPECT_FALSE(put_back());
    EXPECT_TRUE(on_disk()) << "for `ab --restore`";
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
}

TEST_F(FileSwitcherTest, AForeignValueEndsItAndStays) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    file_.content = "99\n";
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().text, "/sys/value: an external writer wrote '99', which is left as it is");
    expect_back("99\n");
}

TEST_F(FileSwitcherTest, AnArmsOwnValueIsForeignWhereWeDidNotWriteItLast) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    file_.content = "32\n";
    EXPECT_FALSE(s.check());
    expect_back("32\n");
}

// `ab` and its guardian are killed at each step.
TEST_F(FileSwitcherTest, AForeignValueIsLeftAfterACrashToo) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    ASSERT_TRUE(s.to(0));
    file_.content = "99\n";
    expect_back("99\n");
    EXPECT_EQ(log_.count(Event::external), 1U);
}

TEST_F(FileSwitcherTest, ACrashBetweenTheBaselineAndTheWriteLeavesNothing) {
    struct Crash {};
    for (const unsigned write : {1U, 2U, 3U, 4U, 5U}) {
        file_.content = "8\n";
        file_.before_write = [&, n = 0U]() mutable {
            if (++n == write) throw Crash();
        };
        auto s = switcher({"16", "32"});
        EXPECT_THROW(
            {
                (void)s.begin();
                (void)s.to(0);
                (void)s.to(1);
            },
            Crash);
        ASSERT_TRUE(on_disk());
        file_.before_write = [] {};
        expect_back("8\n");
    }
}

TEST_F(FileSwitcherTest, ACrashBetweenTheWriteAndTheReadLeavesNothing) {
    struct Crash {};
    for (const unsigned write : {2U, 3U, 4U, 5U}) {
        file_.content = "8\n";
        file_.shows = [&, n = 0U](const std::string& v) mutable {
            if (++n < write) return v + "\n";
            file_.content = v + "\n";
            throw Crash();
        };
        auto s = switcher({"16", "32"});
        EXPECT_THROW(
            {
                (void)s.begin();
                (void)s.to(0);
                (void)s.to(1);
            },
            Crash);
        EXPECT_NE(file_.content, "8\n");
        file_.shows = [](const std::string& v) { return v + "\n"; };
        expect_back("8\n");
    }
}

TEST_F(FileSwitcherTest, AFileThatWentNeedsNothing) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    file_.read_error = ENOENT;
    EXPECT_FALSE(s.to(0));
    EXPECT_TRUE(put_back());
    EXPECT_FALSE(on_disk());
}

TEST_F(FileSwitcherTest, WhatCannotBeReadStaysOnDisk) {
    auto s = switcher({"16", "32"});
    ASSERT_TRUE(s.begin());
    file_.read_error = EIO;
    EXPECT_FALSE(put_back());
    EXPECT_TRUE(on_disk());
    file_.read_error = 0;
    expect_back("8\n");
}

TEST_F(FileSwitcherTest, BytesThatAreNoTextAreRefused) {
    file_.content = "\xff\xfe";
    EXPECT_FALSE(switcher({"16", "32"}).begin());
    EXPECT_THAT(file_.writes, ElementsAre());
    EXPECT_FALSE(on_disk());
}

TEST_F(FileSwitcherTest, ABrokenFileOnDiskIsToldOfAndKept) {
    tree_.add(File("ab.json", "nonsense\n"));
    EXPECT_FALSE(put_back());
    EXPECT_EQ(tree_.read("ab.json"), "nonsense\n");
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
}

TEST(ValueIn, IsWhatAWriteTakes) {
    EXPECT_EQ(value_in("8\n"), "8");
    EXPECT_EQ(value_in("always [madvise] never\n"), "madvise");
    EXPECT_EQ(value_in("[none]\n"), "none");
    EXPECT_EQ(value_in("4 4 1 7\n"), "4 4 1 7");
    EXPECT_EQ(value_in("[a] [b]\n"), "[a] [b]") << "no choice";
    EXPECT_EQ(value_in("[]\n"), "[]");
    EXPECT_EQ(value_in("a[0] b\n"), "a[0] b");
    EXPECT_EQ(value_in("two\nlines\n"), "two\nlines");
    EXPECT_EQ(value_in("\n"), "");
}

TEST(KernelValueFiles, WriteWithoutAnEndOfLine) {
    const test::TempTree tree{File("value", "a longer one\n")};
    KernelValueFiles files;
    ASSERT_TRUE(files.write(tree.path("value"), "16"));
    EXPECT_EQ(*files.read(tree.path("value")), "16");
    ASSERT_TRUE(files.write(tree.path("value"), ""));
    EXPECT_EQ(tree.read("value"), "\n");
    const auto missing = files.write(tree.path("nothing"), "1");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ENOENT);
}

TEST(ResolveValueFile, IsBelowSysOrProc) {
    test::TempTree tree{Dir("sys/block/sda", {File("nr", "8\n")}), File("proc/nr", "8\n"),
                        File("etc/nr", "8\n")};
    tree.link("sys/link", "block/sda/nr");
    tree.link("sys/out", "../etc/nr");
    tree.link("outside", "sys/block");
    const auto at = [&](const std::string& path) { return resolve_value_file(tree.root(), path); };
    EXPECT_EQ(*at("/sys/block/sda/nr"), tree.path("sys/block/sda/nr"));
    EXPECT_EQ(*at("/sys/link"), tree.path("sys/block/sda/nr"));
    EXPECT_EQ(*at("/outside/sda/nr"), tree.path("sys/block/sda/nr"));
    EXPECT_TRUE(at("/proc/nr"));
    for (const char* path : {"/etc/nr", "/sys/out", "/sys/../etc/nr"}) {
        const auto refused = at(path);
        ASSERT_FALSE(refused) << path;
        EXPECT_THAT(refused.error().text, testing::StartsWith(path));
        EXPECT_THAT(refused.error().text, testing::EndsWith(" is not below /sys or /proc"));
        EXPECT_EQ(refused.error().code, EPERM);
    }
    EXPECT_EQ(at("/etc/nr").error().text, "/etc/nr is not below /sys or /proc");
    EXPECT_THAT(at("/sys/out").error().text, HasSubstr(", which is " + tree.path("etc/nr") + ","));
    EXPECT_THAT(at("sys/block/sda/nr").error().text, HasSubstr("is not an absolute path"));
    EXPECT_THAT(at("/sys/block/sda").error().text, HasSubstr("is not a file"));
    EXPECT_THAT(at("/sys/nothing").error().text, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace wq::ab
