// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/scope_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "fake_scope_files.h"

namespace wq {
namespace {

using Kind = Outcome::Kind;
using test::FakeScopeFiles;
using testing::ElementsAre;
using testing::HasSubstr;

// An entry for the target "a", whose baseline is `default` and of which these words are announced.
BaselineEntry entry(std::vector<std::string> may_hold = {"smt"}) {
    BaselineEntry out;
    out.name = "a";
    out.inode = 1;
    out.scope = "default";
    out.strict = false;
    out.may_hold = std::move(may_hold);
    out.allow(out.scope);
    return out;
}

FakeScopeFiles holding(const std::string& word, bool strict = false) {
    FakeScopeFiles files;
    files.files["a"] = {1, word, strict};
    return files;
}

TEST(Apply, WritesOnceBetweenTwoReads) {
    auto files = holding("default");
    const Outcome out = apply(files, entry(), "smt", {});
    EXPECT_EQ(out.kind, Kind::done);
    EXPECT_TRUE(out.wrote);
    EXPECT_THAT(files.asked, ElementsAre("read a", "write a smt", "read a"));
}

TEST(Apply, OfTheWordInPlaceIsOneRead) {
    auto files = holding("smt");
    const Outcome out = apply(files, entry(), "smt", {});
    EXPECT_EQ(out.kind, Kind::done);
    EXPECT_FALSE(out.wrote);
    EXPECT_THAT(files.asked, ElementsAre("read a"));
}

TEST(Apply, OverwritesItsOwnEarlierWord) {
    auto files = holding("smt");
    EXPECT_EQ(apply(files, entry({"smt", "numa"}), "numa", {}).kind, Kind::done);
    EXPECT_EQ(files.files["a"].word, "numa");
}

TEST(Apply, AForeignStrictnessIsFoundBeforeTheWordIsWritten) {
    auto files = holding("default", true);
    const Outcome out = apply(files, entry(), "smt", false);
    EXPECT_EQ(out.kind, Kind::foreign);
    EXPECT_TRUE(out.of_strict);
    EXPECT_EQ(out.text, "strict");
    EXPECT_EQ(files.writes(), 0U);
}

TEST(Apply, AStrictnessThatBecomesForeignMeanwhileIsLeft) {
    auto files = holding("default");
    files.before_write = [&] { files.files["a"].strict = true; };
    const Outcome out = apply(files, entry(), "smt", false);
    EXPECT_EQ(out.kind, Kind::foreign);
    EXPECT_TRUE(out.of_strict);
    EXPECT_TRUE(out.wrote) << "the word was";
    EXPECT_EQ(files.files["a"].word, "smt");
    EXPECT_TRUE(files.files["a"].strict);
}

TEST(Apply, LeavesAWordThatIsNeitherBaselineNorOurs) {
    auto files = holding("numa");
    const Outcome out = apply(files, entry(), "smt", true);
    EXPECT_EQ(out.kind, Kind::foreign);
    EXPECT_EQ(out.text, "numa");
    EXPECT_EQ(files.writes(), 0U) << "nor is its strictness written";
}

TEST(Apply, PutsTheBaselineBackWhereTheKernelMadeAnotherWordOfIt) {
    auto files = holding("default");
    files.prefixes = true;
    const Outcome out = apply(files, entry({"cache_shard", "cache"}), "cache_shard", {});
    EXPECT_EQ(out.kind, Kind::unsupported);
    EXPECT_EQ(out.text, "cache");
    EXPECT_EQ(files.files["a"].word, "default");
    EXPECT_THAT(files.asked, ElementsAre("read a", "write a cache_shard", "read a", "read a",
                                         "write a default", "read a"));
}

TEST(Apply, PutsItBackEvenIfNobodyForesawThatWord) {
    auto files = holding("default");
    files.prefixes = true;
    EXPECT_EQ(apply(files, entry({"cache_shard"}), "cache_shard", {}).kind, Kind::unsupported);
    EXPECT_EQ(files.files["a"].word, "default");
}

// Nobody but somebody else can have made that of our word.
TEST(Apply, LeavesAWordThatSomebodyElseWritesBehindOurs) {
    auto files = holding("default");
    files.after_write = [&] { files.files["a"].word = "numa"; };
    const Outcome out = apply(files, entry(), "smt", {});
    EXPECT_EQ(out.kind, Kind::foreign);
    EXPECT_EQ(out.text, "numa");
    EXPECT_EQ(files.files["a"].word, "numa");
}

TEST(Apply, LeavesAnEarlierWordAndTheBaselineWhereTheEntryIsSettled) {
    for (const std::string word : {"default", "cpu"}) {
        BaselineEntry e = entry({"cpu"});
        e.announce("smt");
        e.settle("smt", {});
        auto files = holding(word);
        EXPECT_EQ(apply(files, e, "numa", {}).kind, Kind::foreign) << word;
        EXPECT_EQ(files.writes(), 0U);
    }
}

TEST(Apply, SaysWhatKeptAMisreadWordFromBeingPutBack) {
    auto files = holding("default");
    files.prefixes = true;
    files.write_errors = {0, ENOMEM};
    const Outcome out = apply(files, entry({"cache_shard", "cache"}), "cache_shard", {});
    EXPECT_EQ(out.kind, Kind::transient);
    EXPECT_EQ(out.code, ENOMEM);
    EXPECT_EQ(files.files["a"].word, "cache");
}

TEST(Apply, OfAnotherWorkqueueOfTheSameNameIsGoneWithoutAWrite) {
    auto files = holding("default");
    files.files["a"].inode = 2;
    EXPECT_EQ(apply(files, entry(), "smt", {}).kind, Kind::gone);
    EXPECT_EQ(files.writes(), 0U);
    EXPECT_EQ(files.files["a"].word, "default");
}

TEST(Apply, FindsAWorkqueueThatVanishesBeforeTheWrite) {
    auto files = holding("default");
    files.before_write = [&] { files.files.clear(); };
    EXPECT_EQ(apply(files, entry(), "smt", {}).kind, Kind::gone);
}

TEST(Apply, FindsAWorkqueueThatIsReplacedBeforeTheWrite) {
    auto files = holding("default");
    files.before_write = [&] { files.files["a"] = {2, "default", false}; };
    EXPECT_EQ(apply(files, entry(), "smt", {}).kind, Kind::gone);
    EXPECT_EQ(files.files["a"].word, "default");
}

TEST(Apply, SortsErrors) {
    for (const int code : {ENOENT, ENODEV}) EXPECT_EQ(kind_of_error(code), Kind::gone) << code;
    for (const int code : {ENOMEM, EBUSY, EAGAIN, EINTR, EMFILE, ENFILE})
        EXPECT_EQ(kind_of_error(code), Kind::transient) << code;
    for (const int code : {EINVAL, EPERM, EROFS, EACCES, EIO, 0})
        EXPECT_EQ(kind_of_error(code), Kind::permanent) << code;
}

TEST(Apply, SaysHowEachCallFailed) {
    const std::vector<std::pair<int, Kind>> cases = {
        {EINVAL, Kind::permanent}, {EROFS, Kind::permanent}, {EBUSY, Kind::transient}, {ENODEV, Kind::gone}};
    for (const auto& [code, kind] : cases) {
        auto unreadable = holding("default");
        unreadable.read_errors = {code};
        auto refuses = holding("default");
        refuses.write_errors = {code};
        auto silent = holding("default");
        silent.read_errors = {0, code};
        for (FakeScopeFiles* files : {&unreadable, &refuses, &silent}) {
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
    BaselineEntry e = entry();
    e.may_strict = true;
    const Outcome out = apply(files, e, "smt", true);
    EXPECT_EQ(out.kind, Kind::done);
    EXPECT_TRUE(files.files["a"].strict);
    EXPECT_THAT(files.asked, ElementsAre("read strict a", "read a", "write a smt", "read a", "read strict a",
                                         "write strict a 1"));
}

TEST(Apply, SetsStrictnessAlone) {
    auto files = holding("smt");
    BaselineEntry e = entry();
    e.may_strict = true;
    EXPECT_TRUE(apply(files, e, "smt", true).wrote);
    EXPECT_THAT(files.asked, ElementsAre("read strict a", "read a", "read strict a", "write strict a 1"));
}

TEST(Apply, SaysThatStrictnessFailed) {
    auto files = holding("default");
    files.write_strict_errors = {EPERM};
    BaselineEntry e = entry();
    e.may_strict = true;
    const Outcome out = apply(files, e, "smt", true);
    EXPECT_EQ(out.kind, Kind::permanent);
    EXPECT_TRUE(out.wrote) << "the scope was";
}

TEST(Restore, WritesTheBaselineWhereOurWordIs) {
    auto files = holding("smt", true);
    BaselineEntry e = entry();
    e.may_strict = true;
    EXPECT_TRUE(restore(files, e).wrote);
    EXPECT_EQ(files.files["a"].word, "default");
    EXPECT_FALSE(files.files["a"].strict);
}

TEST(Restore, LeavesStrictnessAloneWhereItWasNeverOurs) {
    auto files = holding("smt", true);
    EXPECT_EQ(restore(files, entry()).kind, Kind::done);
    EXPECT_TRUE(files.files["a"].strict);
    EXPECT_THAT(files.asked, Not(testing::Contains(HasSubstr("strict"))));
}

TEST(Restore, LeavesAForeignWordAndPutsOurStrictnessBack) {
    auto files = holding("numa", true);
    BaselineEntry e = entry();
    e.may_strict = true;
    const Outcome out = restore(files, e);
    EXPECT_EQ(out.kind, Kind::foreign);
    EXPECT_EQ(out.text, "numa");
    EXPECT_EQ(files.files["a"].word, "numa");
    EXPECT_FALSE(files.files["a"].strict);
}

TEST(Restore, OfABaselineInPlaceWritesNothing) {
    auto files = holding("default");
    BaselineEntry e = entry();
    e.may_strict = true;
    const Outcome out = restore(files, e);
    EXPECT_EQ(out.kind, Kind::done);
    EXPECT_FALSE(out.wrote);
    EXPECT_EQ(files.writes(), 0U);
}

TEST(Restore, TriesStrictnessWhereTheScopeFails) {
    auto files = holding("smt", true);
    files.write_errors = {EINVAL};
    BaselineEntry e = entry();
    e.may_strict = true;
    EXPECT_EQ(restore(files, e).kind, Kind::permanent);
    EXPECT_FALSE(files.files["a"].strict);
}

}  // namespace
}  // namespace wq
