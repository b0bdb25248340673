// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <syslog.h>
#include <cstring>

#include "fake_log.h"
#include "fake_machine.h"
#include "fake_workqueue_files.h"
#include "owned/writer.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::FakeWorkqueueFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using End = Outcome::Kind;

// An entry of the target "a", with the baseline `default`, not strict, and the announced words CLAIM.
Owned entry(std::vector<std::string> claim = {"smt"}, bool strict = false) {
    Owned out{"a", 1, {Knob::scope, "default", std::move(claim)}, Attribute{Knob::strict, "0"}};
    out.main.allow("default");
    if (strict) out.strict->announce("1");
    return out;
}

FakeWorkqueueFiles holding(const std::string& word, bool strict = false) {
    FakeWorkqueueFiles files;
    files.files["a"] = {1, word, strict};
    return files;
}

// As the daemon does it: ENTRY is saved to disk first.
Outcome apply(FakeWorkqueueFiles& files, const Owned& entry, const std::string& word,
              std::optional<bool> strict) {
    const test::TempTree tree;
    OwnedStore store(tree.path("owned.json"));
    store.put(entry);
    EXPECT_TRUE(store.save());
    return OwnedWriter(files, store).apply(entry.name, {word, strict});
}

TEST(Apply, WritesOnceBetweenTwoReads) {
    auto files = holding("default");
    const Outcome out = apply(files, entry(), "smt", {});
    EXPECT_EQ(out.kind, End::done);
    EXPECT_TRUE(out.wrote);
    EXPECT_THAT(files.asked, ElementsAre("read a", "write a smt", "read a"));
    EXPECT_FALSE(apply(files, entry(), "smt", {}).wrote);
    EXPECT_THAT(files.asked, ElementsAre("read a", "write a smt", "read a", "read a"));
}

TEST(Apply, PutsTheBaselineBackWhereTheKernelMadeAnotherWordOfIt) {
    auto files = holding("default");
    files.prefixes = true;
    const Outcome out = apply(files, entry({"cache_shard", "cache"}), "cache_shard", {});
    EXPECT_EQ(out.kind, End::unsupported);
    EXPECT_EQ(out.text, "cache");
    EXPECT_EQ(files.files["a"].word, "default");
    EXPECT_THAT(files.asked, ElementsAre("read a", "write a cache_shard", "read a", "read a",
                                         "write a default", "read a"));
}

TEST(Apply, SortsErrors) {
    for (const int code : {ENOENT, ENODEV}) EXPECT_EQ(kind_of_error(code), End::gone) << code;
    for (const int code : {ENOMEM, EBUSY, EAGAIN, EINTR, EMFILE, ENFILE})
        EXPECT_EQ(kind_of_error(code), End::transient) << code;
    for (const int code : {EINVAL, EPERM, EROFS, EACCES, EIO, 0})
        EXPECT_EQ(kind_of_error(code), End::permanent) << code;
}

TEST(Apply, SaysHowEachCallFailed) {
    const std::vector<std::pair<int, End>> cases = {
        {EINVAL, End::permanent}, {EROFS, End::permanent}, {EBUSY, End::transient}, {ENODEV, End::gone}};
    for (const auto& [code, kind] : cases) {
        auto unreadable = holding("default");
        unreadable.read_errors = {code};
        auto refuses = holding("default");
        refuses.write_errors = {code};
        auto silent = holding("default");
        silent.read_errors = {0, code};
        for (FakeWorkqueueFiles* files : {&unreadable, &refuses, &silent}) {
            const Outcome out = apply(*files, entry(), "smt", {});
            EXPECT_EQ(out.kind, kind) << code;
            EXPECT_EQ(out.code, code);
            EXPECT_THAT(out.text, HasSubstr(std::strerror(code)));
            EXPECT_EQ(out.wrote, files == &silent);
        }
    }
}

TEST(Apply, SetsStrictnessAfterTheScope) {
    auto files = holding("default");
    const Owned e = entry({"smt"}, true);
    const Outcome out = apply(files, e, "smt", true);
    EXPECT_EQ(out.kind, End::done);
    EXPECT_TRUE(files.files["a"].strict);
    EXPECT_THAT(files.asked, ElementsAre("read strict a", "read a", "write a smt", "read a", "read strict a",
                                         "write strict a 1"));
}

// The writer writes only what the entry on disk announces to the next process.
class WriterTest : public testing::Test {
  protected:
    WriterTest() { files_.files["a"] = {1, "default", false}; }
    void put(Owned entry) {
        store_.put(std::move(entry));
        ASSERT_TRUE(store_.save());
    }
    void expect_refused(const Outcome& outcome) {
        EXPECT_EQ(outcome.kind, End::permanent);
        EXPECT_EQ(outcome.code, EPERM);
        EXPECT_THAT(outcome.text, HasSubstr("its baseline is not on disk"));
        EXPECT_THAT(files_.writes(), IsEmpty());
    }

    test::TempTree tree_;
    FakeWorkqueueFiles files_;
    OwnedStore store_{tree_.path("owned.json")};
    OwnedWriter writer_{files_, store_};
};

// Each row: what was done to the entry of "a" before the write of VALUES. Once it is announced and saved, it
// is written.
TEST_F(WriterTest, WritesOnlyWhatIsAnnouncedOnDisk) {
    const Values smt{"smt", {}}, numa{"numa", {}}, strict{"smt", true};
    const struct {
        const char* what;
        std::function<void()> before;
        Values values;
    } rows[] = {
        {"no entry", [] {}, smt},
        {"not saved", [&] { store_.put(entry()); }, smt},
        {"not announced", [&] { put(entry()); }, numa},
        {"announced, not saved", [&] { put(entry()), store_.find("a")->announce(numa); }, numa},
        {"a strictness", [&] { put(entry()), files_.files["a"].word = "smt"; }, strict},
        {"a strictness, not saved",
         [&] {
             put(entry());
             files_.files["a"].word = "smt";
             store_.find("a")->announce(strict);
         },
         strict},
        {"the save failed",
         [&] {
             put(entry());
             store_.find("a")->announce(numa);
             tree_.remove("owned.json");
             ASSERT_EQ(::mkdir(tree_.path("owned.json").c_str(), 0755), 0);
             ASSERT_FALSE(store_.save());
         },
         numa},
    };
    for (const auto& [what, before, values] : rows) {
        SCOPED_TRACE(what);
        store_.remove("a");
        files_.files["a"] = {1, "default", false};
        files_.asked.clear();
        before();
        expect_refused(writer_.apply("a", values));
        if (!values.strict) expect_refused(writer_.rewrite("a", values));
        if (store_.find("a") == nullptr) {
            expect_refused(writer_.put_back("a"));
            continue;
        }
        tree_.remove("owned.json");
        store_.find("a")->announce(values);
        ASSERT_TRUE(store_.save());
        EXPECT_EQ(writer_.apply("a", values).kind, End::done);
        EXPECT_EQ(files_.files["a"].strict, values.strict.has_value());
    }
}

TEST_F(WriterTest, PutsABaselineBackThatCannotBeSaved) {
    files_.files["a"].word = "smt";
    const Owned e = entry({"smt"}, true);
    files_.files["a"].strict = true;
    store_.put(e);
    EXPECT_EQ(writer_.put_back("a").kind, End::done);
    EXPECT_EQ(files_.files["a"].word, "default");
    EXPECT_FALSE(files_.files["a"].strict);
}

// A strictness of ours goes before the scope, one of the kernel's comes back after it.
TEST_F(WriterTest, PutsBackWithoutAMomentOfAStrictScopeThatNobodyAskedFor) {
    Owned of_kernel = entry();
    of_kernel.strict = Attribute{Knob::strict, "1", {"0"}};
    for (const bool ours : {true, false}) {
        put(ours ? entry({"smt"}, true) : of_kernel);
        files_.files["a"] = {1, "smt", ours};
        EXPECT_EQ(writer_.put_back("a").kind, End::done);
    }
    EXPECT_THAT(files_.writes(), ElementsAre("strict a 0", "a default", "a default", "strict a 1"));
}

TEST_F(WriterTest, LeavesWhatChangedSinceItWasSeen) {
    put(entry({"smt", "numa"}));
    files_.files["a"].word = "numa";
    EXPECT_EQ(writer_.apply("a", {"smt", {}}, {"default", false}).kind, End::foreign);
    EXPECT_EQ(writer_.put_back("a", {"smt", false}).kind, End::foreign);
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_EQ(writer_.apply("a", {"smt", {}}, {"numa", false}).kind, End::done);
}

// No moment has a strict scope that nobody asked for.
TEST(Apply, TakesStrictnessAwayBeforeTheScopeChanges) {
    auto files = holding("smt", true);
    const Owned e = entry({"smt", "numa"}, true);
    EXPECT_EQ(apply(files, e, "numa", false).kind, End::done);
    EXPECT_THAT(files.writes(), ElementsAre("strict a 0", "a numa"));
}

// ---- masks

class MaskWriterTest : public WriterTest {
  protected:
    MaskWriterTest() { files_.masks["a"] = {7, "000000ff"}; }
    // Saves the entry like a newly started daemon before its write.
    void announce(const std::string& mask) {
        store_ = OwnedStore(tree_.path("owned.json"));
        store_.put({"a", 7, {Knob::mask, files_.masks["a"].text}}).announce({mask, {}});
        ASSERT_TRUE(store_.save());
    }
    Outcome apply(const std::string& mask) { return writer_.apply("a", {mask, {}}, {}, Knob::mask); }
};

TEST_F(MaskWriterTest, WritesWhatIsAnnouncedOnDiskAndPutsItBackBitForBit) {
    EXPECT_EQ(apply("30").code, EPERM) << "no entry";
    announce("30");
    EXPECT_EQ(apply("2").code, EPERM) << "another mask";
    EXPECT_TRUE(apply("30").wrote);
    EXPECT_FALSE(apply("0030").wrote) << "it is in place";
    EXPECT_TRUE(writer_.put_back("a", {}, Knob::mask).wrote);
    EXPECT_THAT(files_.writes(), ElementsAre("a 30", "a 000000ff"));
}

TEST_F(MaskWriterTest, PutsTheBaselineBackWhereTheKernelMadeAnotherMask) {
    files_.possible = files_.masks["a"].text = "1f";
    announce("30");
    const Outcome out = apply("30");
    EXPECT_EQ(out.kind, End::unsupported);
    EXPECT_EQ(out.text, "4");
    EXPECT_EQ(files_.masks["a"].text, "1f");
}

class RestoreAll : public testing::Test {
  protected:
    // A target that holds WORD; its baseline is `default`, our word `smt`.
    void add(const std::string& name, const std::string& word, ino_t inode = 1) {
        files_.files[name] = {inode, word, false};
        store_.put({name, 1, {Knob::scope, "default", {"smt"}}, Attribute{Knob::strict, "0"}});
        ASSERT_TRUE(store_.save());
    }
    OwnedEntries on_disk() { return test::saved_entries(tree_, "owned.json"); }

    test::TempTree tree_;
    test::FakeWorkqueueFiles files_;
    test::FakeLog log_;
    OwnedStore store_{tree_.path("owned.json")};
};

TEST_F(RestoreAll, ForgetsWhatIsGoneOrBackQuietly) {
    add("back", "default");
    add("gone", "smt");
    add("reused", "smt", 2);
    files_.files.erase("gone");
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_EQ(files_.files["reused"].word, "smt") << "another workqueue, which is not ours";
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(RestoreAll, KeepsWhatCouldNotBeRestoredAndSaysWhy) {
    add("a", "smt");
    add("b", "smt");
    files_.write_errors = {EPERM};  // for a, which is first
    EXPECT_EQ(restore_all(files_, store_, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(on_disk(), ElementsAre(testing::Key("a")));
    EXPECT_EQ(on_disk().at("a").main.claim, std::vector<std::string>{"smt"});
    ASSERT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines[0].text, HasSubstr("a: not put back to 'default'"));
    EXPECT_EQ(log_.lines[0].priority, LOG_ERR);
    EXPECT_THAT(log_.lines[0].fields, testing::Contains(std::pair<std::string, std::string>("ERRNO", "1")));
}

TEST_F(RestoreAll, TriesABusyKernelThreeTimesAndAPermanentErrorOnce) {
    struct Case {
        std::vector<int> errors;
        unsigned left, writes;
    };
    for (const auto& [errors, left, writes] :
         {Case{{EBUSY, EAGAIN}, 0, 3}, Case{{EBUSY, EBUSY, EBUSY}, 1, 3}, Case{{EINVAL}, 1, 1}}) {
        files_ = {};
        add("a", "smt");
        files_.write_errors.assign(errors.begin(), errors.end());
        EXPECT_EQ(restore_all(files_, store_, log_), left);
        EXPECT_EQ(files_.writes().size(), writes);
        EXPECT_EQ(on_disk().size(), left);
    }
}

TEST_F(RestoreAll, SaysThatTheFileCouldNotBeWritten) {
    add("a", "smt");
    tree_.remove("owned.json");
    tree_.write("file", "");
    OwnedStore nowhere(tree_.path("file/owned.json"));
    nowhere.put({"a", 1, {Knob::scope, "default", {"smt"}}});
    nowhere.put({"b", 1, {Knob::scope, "default", {"smt"}}});
    files_.files["b"] = {1, "smt", false};
    files_.write_errors = {EPERM};
    EXPECT_EQ(restore_all(files_, nowhere, log_), 1U);
    EXPECT_EQ(files_.files["b"].word, "default");
    EXPECT_THAT(log_.lines.back().text, HasSubstr("owned.json"));
}

TEST_F(RestoreAll, HasOneOrderOfAllFiles) {
    for (const std::string name : {"a", "b", "@default"}) add(name, "smt");
    files_.files["a"].strict = true;
    store_.find("a")->strict->claim = {"1"};
    store_.find("b")->strict = Attribute{Knob::strict, "1", {"0"}};
    store_.find("@default")->strict.reset();
    for (const std::string name : {"@default_mask", "a"}) {
        files_.masks[name] = {1, "f"};
        store_.put({name, 1, {Knob::mask, "00ff", {"f"}}});
    }
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_THAT(files_.writes(), ElementsAre("strict a 0", "@default default", "a 00ff", "@default_mask 00ff",
                                             "a default", "b default", "strict b 1"));
    EXPECT_THAT(store_.all(), IsEmpty());
    EXPECT_EQ(log_.count(Event::restored), 3U);
    EXPECT_EQ(log_.count(Event::mask_restored), 2U);
}

// ---- masks

TEST_F(RestoreAll, SaysWhichIsolatedCpusAMaskLetsIn) {
    files_.masks["a"] = {1, "30", "", {2, 3}};
    store_.put({"a", 1, {Knob::mask, "000000ff", {"30"}}});
    EXPECT_EQ(restore_all(files_, store_, log_, true), 0U) << "a mask is kept";
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_EQ(restore_all(files_, store_, log_), 0U);
    EXPECT_THAT(log_.lines.back().text,
                HasSubstr("restored to CPUs 0-7; isolated CPUs 2-3 may get unbound work"));
}

}  // namespace
}  // namespace wq
