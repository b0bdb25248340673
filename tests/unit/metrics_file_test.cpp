// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_log.h"
#include "manual_writer.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::TempTree;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kFile = "/srv/metrics/wq.prom";
constexpr const char* kRecord = "run/wq-tuned/textfile";

class MetricsFileTest : public testing::Test {
  protected:
    [[nodiscard]] MetricsFile daemon() {
        MetricsFile out(Paths{tree_.root()}, log_, writer_);
        out.recall();
        return out;
    }
    [[nodiscard]] ino_t inode() const {
        struct stat st = {};
        EXPECT_EQ(::stat(tree_.path(kFile).c_str(), &st), 0);
        return st.st_ino;
    }

    TempTree tree_{Dir("srv/metrics"), Dir("run/wq-tuned")};
    test::FakeLog log_;
    WriteAtOnce writer_;
};

// With the daemon, after a daemon that was killed, where the policy names no other.
TEST_F(MetricsFileTest, Goes) {
    for (const char* how : {"end", "kill", "policy"}) {
        SCOPED_TRACE(how);
        MetricsFile file = daemon();
        file.use("/srv/metrics/other.prom");
        file.show("a 1\n");
        EXPECT_EQ(tree_.read("srv/metrics/other.prom"), "a 1\n");
        file.use(kFile);
        EXPECT_FALSE(tree_.exists("srv/metrics/other.prom"));
        file.show("a 1\n");
        EXPECT_EQ(tree_.read(kFile), "a 1\n");
        if (*how == 'e') file.remove();
        if (*how == 'k') daemon().remove();
        if (*how == 'p') file.use("");
        EXPECT_FALSE(tree_.exists(kFile));
        EXPECT_FALSE(tree_.exists(kRecord));
    }
}

TEST_F(MetricsFileTest, IsWrittenOnlyWhereItChanged) {
    MetricsFile file = daemon();
    file.use(kFile);
    file.show("a 1\n");
    const ino_t first = inode();
    file.show("a 1\n");
    EXPECT_EQ(inode(), first);
    file.show("a 2\n");
    tree_.remove(kFile);  // by another program
    file.show("a 2\n");
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
    EXPECT_THAT(log_.lines, IsEmpty());
    tree_.add(Dir("srv/metrics/wq.prom.new"));  // prevents the new file
    file.show("a 3\n");
    EXPECT_FALSE(tree_.exists(kFile)) << "what is no longer true does not stay";
    EXPECT_THAT(log_.lines, SizeIs(1));
}

TEST_F(MetricsFileTest, AfterARestartTheNextOneGoesOnWithIt) {
    {
        MetricsFile file = daemon();
        file.use(kFile);
        file.show("a 1\n");
    }
    MetricsFile next = daemon();
    EXPECT_TRUE(next.is_wanted()) << "also where it cannot read its policy";
    next.use(kFile);
    EXPECT_EQ(tree_.read(kFile), "a 1\n") << "without a gap";
    next.show("a 2\n");
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
}

TEST_F(MetricsFileTest, AnErrorIsSaidOnceUntilItIsAnother) {
    MetricsFile file = daemon();
    file.use(kFile);
    tree_.remove("srv/metrics");
    for (int i = 0; i < 3; i++) file.show("a 1\n");
    ASSERT_THAT(log_.lines, SizeIs(1));
    EXPECT_EQ(log_.lines[0].event, Event::metrics_failed);
    EXPECT_EQ(log_.lines[0].priority, LOG_WARNING);
    EXPECT_THAT(log_.lines[0].text, HasSubstr(kFile));
    tree_.write("srv/metrics", "no folder");
    file.show("a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(2));
    tree_.remove("srv/metrics");
    tree_.add(Dir("srv/metrics"));
    file.show("a 1\n");
    EXPECT_EQ(tree_.read(kFile), "a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(2));
    tree_.remove("srv/metrics");
    file.show("a 1\n");
    EXPECT_THAT(log_.lines, SizeIs(3)) << "it had worked in between";
}

TEST_F(MetricsFileTest, ASlowDiskIsNotWaitedFor) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    file.show("a 2\n");
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_EQ(slow.waiting(), 1U) << "the newest is enough";
    slow.answer();
    EXPECT_EQ(tree_.read(kFile), "a 2\n");
    file.show("a 3\n");
    file.remove();
    EXPECT_TRUE(tree_.exists(kRecord)) << "as long as the file may be there";
    slow.answer();
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_FALSE(tree_.exists(kRecord));
}

// Like several reloads while the disk does not answer.
TEST_F(MetricsFileTest, AFileThatIsWantedAgainStays) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    for (const char* path : {"/srv/metrics/other.prom", kFile}) {
        file.use(path);
        file.show("a 1\n");
    }
    slow.answer();
    EXPECT_EQ(tree_.read(kFile), "a 1\n");
    EXPECT_FALSE(tree_.exists("/srv/metrics/other.prom"));
    EXPECT_EQ(tree_.read(kRecord), std::string(kFile) + "\n");
}

TEST_F(MetricsFileTest, ARemovalThatComesLateLeavesTheRecordOfTheNextFile) {
    test::ManualWriter slow;
    MetricsFile file(Paths{tree_.root()}, log_, slow);
    file.use(kFile);
    file.show("a 1\n");
    slow.answer();
    file.use("/srv/metrics/other.prom");
    file.show("a 1\n");
    slow.answer();
    EXPECT_FALSE(tree_.exists(kFile));
    EXPECT_EQ(tree_.read("/srv/metrics/other.prom"), "a 1\n");
    EXPECT_EQ(tree_.read(kRecord), "/srv/metrics/other.prom\n");
}

}  // namespace
}  // namespace wq
