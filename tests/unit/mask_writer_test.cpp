// SPDX-License-Identifier: LGPL-2.1-or-later
// What may be written to a mask and when, and how it is restored from the record on disk alone.
#include "owned/mask_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <syslog.h>

#include "fake_log.h"
#include "fake_mask_files.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MaskWriterTest : public testing::Test {
  protected:
    void SetUp() override { files_.files["a"] = {7, "000000ff"}; }
    // Saves the record like a newly started daemon before its write of CPUS.
    void announce(const CpuSet& cpus) {
        store_ = MaskStore(tree_.path("masks.json"));
        store_.put({"a", 7, "000000ff"}).announce(cpus);
        ASSERT_TRUE(store_.save());
    }
    // The record as a later process reads it.
    MaskStore on_disk() {
        MaskStore out(tree_.path("masks.json"));
        EXPECT_TRUE(out.load());
        return out;
    }
    unsigned restore() {
        MaskStore later = on_disk();
        return restore_masks(files_, later, log_);
    }
    [[nodiscard]] const std::string& text() { return files_.files["a"].text; }

    test::TempTree tree_;
    test::FakeMaskFiles files_;
    test::FakeLog log_;
    MaskStore store_{tree_.path("masks.json")};
    MaskWriter writer_{files_, store_};
    const CpuSet ours_{4, 5};
};

TEST_F(MaskWriterTest, WritesWhatIsAnnouncedOnDiskAndReadsItBack) {
    announce(ours_);
    const Outcome out = writer_.apply("a", ours_);
    EXPECT_EQ(out.kind, Outcome::Kind::done);
    EXPECT_TRUE(out.wrote);
    EXPECT_THAT(files_.writes, ElementsAre("a=30"));
    EXPECT_FALSE(writer_.apply("a", ours_).wrote) << "it is in place";
}

TEST_F(MaskWriterTest, SaysWhichIsolatedCpusABaselineLetsIn) {
    announce(ours_);
    ASSERT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::done);
    files_.files["a"].excluded = {2, 3};
    EXPECT_EQ(restore(), 0U);
    EXPECT_THAT(log_.lines.back().text,
                HasSubstr("restored to CPUs 0-7; isolated CPUs 2-3 may get unbound work"));
}

TEST_F(MaskWriterTest, WritesNothingThatIsNotOnDisk) {
    EXPECT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::permanent) << "no entry";
    store_.put({"a", 7, "000000ff"}).announce(ours_);
    EXPECT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::permanent) << "not saved";
    announce(ours_);
    EXPECT_EQ(writer_.apply("a", CpuSet{1}).kind, Outcome::Kind::permanent) << "another mask";
    EXPECT_THAT(files_.writes, IsEmpty());
}

TEST_F(MaskWriterTest, LeavesAnExternalWritersMask) {
    announce(ours_);
    files_.files["a"].text = "1";
    const Outcome out = writer_.apply("a", ours_);
    EXPECT_EQ(out.kind, Outcome::Kind::foreign);
    EXPECT_EQ(out.text, "0");
    EXPECT_THAT(files_.writes, IsEmpty());
}

TEST_F(MaskWriterTest, LeavesAWorkqueueThatReusesTheName) {
    announce(ours_);
    files_.files["a"].inode = 8;
    EXPECT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::gone);
    EXPECT_EQ(restore(), 0U);
    EXPECT_THAT(files_.writes, IsEmpty());
    EXPECT_THAT(on_disk().entries(), IsEmpty());
}

TEST_F(MaskWriterTest, PutsTheBaselineBackWhereTheKernelMadeAnotherMask) {
    files_.possible = files_.files["a"].text = "1f";
    store_.put({"a", 7, "1f"}).announce(ours_);
    ASSERT_TRUE(store_.save());
    const Outcome out = writer_.apply("a", ours_);
    EXPECT_EQ(out.kind, Outcome::Kind::unsupported);
    EXPECT_EQ(out.text, "4");
    EXPECT_EQ(text(), "1f");
}

TEST_F(MaskWriterTest, GoesBackBitForBitAfterAKillAtAnyStep) {
    announce(ours_);
    EXPECT_EQ(restore(), 0U) << "killed between announcement and write";
    EXPECT_THAT(files_.writes, IsEmpty());
    announce(ours_);
    ASSERT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::done);
    EXPECT_EQ(restore(), 0U) << "killed between write and narrowing";
    EXPECT_THAT(files_.writes, ElementsAre("a=30", "a=000000ff"));
    EXPECT_THAT(on_disk().entries(), IsEmpty());
    EXPECT_EQ(log_.count(Event::mask_restored), 1U);
}

TEST_F(MaskWriterTest, ASettledClaimKnowsOneMaskOnly) {
    announce(ours_);
    ASSERT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::done);
    EXPECT_EQ(store_.find("a")->settle(ours_), Whose::ours);
    EXPECT_EQ(store_.find("a")->whose(ours_), Whose::ours);
    EXPECT_EQ(store_.find("a")->whose(CpuSet::range(0, 7)), Whose::foreign) << "somebody put it back";
    ASSERT_TRUE(store_.save());
    files_.files["a"].text = "3";
    EXPECT_EQ(restore(), 0U);
    EXPECT_EQ(text(), "3") << "an external writer's";
    EXPECT_THAT(on_disk().entries(), IsEmpty());
}

TEST_F(MaskWriterTest, KeepsWhatCouldNotBeRestoredAndSaysWhy) {
    announce(ours_);
    ASSERT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::done);
    files_.write_errors = {EBUSY, EAGAIN};
    EXPECT_EQ(restore(), 0U) << "three tries";
    announce(ours_);
    ASSERT_EQ(writer_.apply("a", ours_).kind, Outcome::Kind::done);
    files_.write_errors = {EPERM};
    EXPECT_EQ(restore(), 1U);
    EXPECT_EQ(on_disk().names(), std::vector<std::string>{"a"});
    ASSERT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines.back().text, HasSubstr("a: cpumask not put back to CPUs 0-7"));
}

TEST_F(MaskWriterTest, ABrokenRecordIsNotReplaced) {
    for (
        const char* text :
        {"{", "[]", R"({"entries": [{"name": "a"}]})",
         R"({"entries": [{"name": "a", "inode": -1, "baseline": "f", "may_hold": [], "external": false}]})",
         R"({"entries": [{"name": "a", "inode": 1, "baseline": "x", "may_hold": [], "external": false}]})"}) {
        tree_.write("masks.json", text);
        MaskStore store(tree_.path("masks.json"));
        EXPECT_FALSE(store.load()) << text;
        store.put({"a", 7, "ff"});
        EXPECT_FALSE(store.save()) << text;
        EXPECT_EQ(tree_.read("masks.json"), text);
    }
}

TEST_F(MaskWriterTest, WithoutEntriesThereIsNoFile) {
    EXPECT_TRUE(store_.save());
    EXPECT_FALSE(tree_.exists("masks.json"));
}

}  // namespace
}  // namespace wq
