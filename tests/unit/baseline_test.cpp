// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>

#include "temp_tree.h"

namespace wq {
namespace {

using test::TempTree;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const BaselineEntry kEntry = {"kcryptd-254:0-1", 4711, "default",   false,
                              {"smt", "cache"},  true, Holder::pin, "smt"};
// A module parameter has no strictness file.
const BaselineEntry kDefaultEntry = {"@default", 1ULL << 40, "cache", {}, {}, {}};

class Baseline : public testing::Test {
  protected:
    ino_t inode() {
        struct stat st = {};
        EXPECT_EQ(::stat(path_.c_str(), &st), 0);
        return st.st_ino;
    }
    TempTree tree_;
    std::string path_ = tree_.path("baseline.json");
    BaselineStore store_{path_};
};

TEST_F(Baseline, IsEmptyWhereThereIsNoFile) {
    EXPECT_TRUE(store_.load());
    EXPECT_THAT(store_.entries(), IsEmpty());
    EXPECT_TRUE(store_.save());
    EXPECT_FALSE(tree_.exists("baseline.json")) << "nothing to keep, nothing written";
}

TEST_F(Baseline, ComesBackAsItWas) {
    store_.put(kEntry);
    store_.put(kDefaultEntry);
    ASSERT_TRUE(store_.save());
    BaselineStore later(path_);
    ASSERT_TRUE(later.load());
    EXPECT_EQ(later.entries(), store_.entries());
    EXPECT_EQ(*later.find("kcryptd-254:0-1"), kEntry);
    EXPECT_EQ(*later.find("@default"), kDefaultEntry);
    EXPECT_EQ(later.find("other"), nullptr);
}

TEST_F(Baseline, SavesAChangeOfAnything) {
    const auto comes_back = [&](const std::function<void(BaselineEntry&)>& change) {
        store_.put(kEntry);
        EXPECT_TRUE(store_.save());
        change(*store_.find(kEntry.name));
        EXPECT_TRUE(store_.save());
        BaselineStore later(path_);
        return later.load() && later.entries() == store_.entries() && *later.find(kEntry.name) != kEntry;
    };
    EXPECT_TRUE(comes_back([](auto& e) { e.inode++; }));
    EXPECT_TRUE(comes_back([](auto& e) { e.scope = "numa"; }));
    EXPECT_TRUE(comes_back([](auto& e) { e.strict = std::nullopt; }));
    EXPECT_TRUE(comes_back([](auto& e) { e.strict = !e.strict.value(); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.allow("system"); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.may_hold.clear(); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.may_strict = !e.may_strict.value_or(true); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.hold(Holder::revert); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.external = true; }));
    EXPECT_TRUE(comes_back([](auto& e) { e.hold(Holder::pin, "cpu"); }));
    EXPECT_TRUE(comes_back([](auto& e) { e.hold(Holder::slot); }));
}

TEST_F(Baseline, HasTheKeysThatScriptsRead) {
    store_.put(kEntry);
    ASSERT_TRUE(store_.save());
    const auto entry = nlohmann::json::parse(tree_.read("baseline.json")).at("entries").at(0);
    EXPECT_EQ(entry.at("name"), "kcryptd-254:0-1");
    EXPECT_EQ(entry.at("inode"), 4711);
    EXPECT_EQ(entry.at("scope"), "default");
    EXPECT_EQ(entry.at("strict"), false);
    EXPECT_THAT(entry.at("may_hold"), testing::ElementsAre("smt", "cache"));
}

TEST_F(Baseline, IsWrittenOnlyWhereItDiffersFromTheFile) {
    store_.put(kEntry);
    ASSERT_TRUE(store_.save());
    const ino_t first = inode();
    ASSERT_TRUE(store_.save());
    store_.put(kEntry);
    store_.find(kEntry.name)->allow("smt");  // already in the list
    ASSERT_TRUE(store_.save());
    EXPECT_EQ(inode(), first);

    BaselineStore later(path_);
    ASSERT_TRUE(later.load());
    ASSERT_TRUE(later.save());
    EXPECT_EQ(inode(), first) << "nor by one that only loaded it";

    later.find(kEntry.name)->allow("numa");
    ASSERT_TRUE(later.save());
    EXPECT_NE(inode(), first);
    later.remove(kEntry.name);
    ASSERT_TRUE(later.save());
    ASSERT_TRUE(store_.load());
    EXPECT_THAT(store_.entries(), IsEmpty());
}

// Of an entry with an unknown order only the order is lost.
TEST_F(Baseline, HasTheOrdersOfOtherVersions) {
    const std::tuple<std::string, Holder, std::string> cases[] = {
        {"pin smt", Holder::pin, "smt"},
        {"revert", Holder::revert, ""},
        {"revert `a` must stay", Holder::revert, ""},
        {"slot", Holder::slot, ""},
        {"later", Holder::policy, ""}};
    for (const auto& [text, holder, pinned] : cases) {
        tree_.write("baseline.json",
                    "{\"entries\":[{\"name\":\"a\",\"inode\":1,\"scope\":\"default\","
                    "\"strict\":null,\"may_hold\":[\"smt\"],\"may_strict\":null,\"order\":\"" +
                        text + "\"}]}");
        BaselineStore store(path_);
        ASSERT_TRUE(store.load());
        const BaselineEntry& entry = *store.find("a");
        EXPECT_EQ(entry.holder, holder) << text;
        EXPECT_EQ(entry.pinned, pinned) << text;
        EXPECT_TRUE(entry.may_be_ours("smt")) << text;
        store.find("a")->allow("cpu");
        ASSERT_TRUE(store.save());
        EXPECT_EQ(tree_.read("baseline.json").find('"' + text + '"') != std::string::npos, text != "later");
    }
}

TEST_F(Baseline, ThatIsNotOursIsAnErrorAndLeavesNoEntries) {
    for (const char* text :
         {"", "{", "[]", "null", "{\"version\":1}", "{\"entries\":[1]}", "{\"entries\":[{\"name\":\"a\"}]}",
          "{\"entries\":[{\"name\":\"a\",\"inode\":\"x\",\"scope\":\"default\",\"strict\":null,"
          "\"may_hold\":[],\"may_strict\":null,\"order\":\"\"}]}",
          "{\"entries\":[{\"name\":\"a\",\"inode\":1,\"scope\":\"default\",\"strict\":0,"
          "\"may_hold\":[],\"may_strict\":null,\"order\":\"\"}]}"}) {
        tree_.write("baseline.json", text);
        BaselineStore store(path_);
        const auto loaded = store.load();
        ASSERT_FALSE(loaded) << text;
        EXPECT_THAT(loaded.error().text, HasSubstr(path_));
        EXPECT_THAT(store.entries(), IsEmpty());
        EXPECT_EQ(tree_.read("baseline.json"), text) << "kept for people to look at";
    }
}

// In an earlier version the conversion of 2^64 and more was undefined, and -1 became an inode.
TEST_F(Baseline, WithANumberThatNoInodeHasIsAnError) {
    for (const std::string inode : {"18446744073709551616", "471118446744073709551616", "-1", "1.5", "1e3"}) {
        tree_.write("baseline.json", "{\"entries\":[{\"name\":\"a\",\"inode\":" + inode +
                                         ",\"scope\":\"default\",\"strict\":null,\"may_hold\":[],"
                                         "\"may_strict\":null,\"order\":\"\"}]}");
        const auto loaded = BaselineStore(path_).load();
        ASSERT_FALSE(loaded) << inode;
        EXPECT_THAT(loaded.error().text, HasSubstr("inode"));
    }
}

TEST_F(Baseline, OfSixteenMebibytesIsAnError) {
    tree_.write("baseline.json", std::string((16 << 20) + 1, ' '));
    const auto loaded = store_.load();
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, EFBIG);
}

TEST_F(Baseline, KeepsNamesThatJsonMustEscape) {
    for (const std::string name : {"a\"b", "a\\b", "a\nb", "caf\xc3\xa9"}) {
        BaselineEntry entry = kEntry;
        entry.name = name;
        store_.put(entry);
    }
    ASSERT_TRUE(store_.save());
    BaselineStore later(path_);
    ASSERT_TRUE(later.load());
    EXPECT_EQ(later.entries(), store_.entries());
}

TEST_F(Baseline, RefusesANameThatWouldComeBackAsAnother) {
    store_.put(kEntry);
    ASSERT_TRUE(store_.save());
    const std::string before = tree_.read("baseline.json");
    BaselineEntry latin1 = kEntry;
    latin1.name = "caf\xe9";
    store_.put(latin1);
    EXPECT_FALSE(store_.save());
    EXPECT_EQ(tree_.read("baseline.json"), before);
    store_.remove(latin1.name);
    EXPECT_TRUE(store_.save());
}

TEST_F(Baseline, IsTriedAgainAfterASaveThatFailed) {
    BaselineStore store(tree_.path("run/baseline.json"));
    store.put(kEntry);
    EXPECT_FALSE(store.save());
    EXPECT_FALSE(store.save()) << "a failed save is not taken for a done one";
    tree_.add(test::Dir("run"));
    EXPECT_TRUE(store.save());
    ASSERT_TRUE(store.load());
    EXPECT_THAT(store.entries(), SizeIs(1));
}

TEST_F(Baseline, AFileThatCouldNotBeReadIsNeverReplaced) {
    tree_.write("baseline.json", "{\"entries\": [");
    ASSERT_FALSE(store_.load());
    store_.put(kEntry);
    EXPECT_FALSE(store_.save());
    EXPECT_EQ(tree_.read("baseline.json"), "{\"entries\": [");
}

// ---- who wrote a value

BaselineEntry announced() {
    BaselineEntry out{"kcryptd", 1, "default", false, {"cpu"}, {}};
    out.announce("smt", true);
    return out;
}

TEST(Claim, OfAnnouncedWordsIsWide) {
    const BaselineEntry entry = announced();
    for (const std::string word : {"cpu", "smt"}) EXPECT_EQ(entry.whose(word), Whose::ours) << word;
    EXPECT_EQ(entry.whose(kEntry.scope), Whose::baseline);
    EXPECT_EQ(entry.whose("numa"), Whose::foreign);
    EXPECT_EQ(entry.whose_strict(true), Whose::ours);
    EXPECT_EQ(entry.whose_strict(false), Whose::baseline);
}

TEST(Claim, OfWhatIsInPlaceIsThatAlone) {
    BaselineEntry entry = announced();
    EXPECT_TRUE(entry.settle("smt", true).is_ours());
    EXPECT_THAT(entry.may_hold, testing::ElementsAre("smt"));
    for (const std::string word : {"cpu", "default", "numa"})
        EXPECT_EQ(entry.whose(word), Whose::foreign) << word;
    EXPECT_EQ(entry.whose_strict(false), Whose::foreign);
    entry.announce_baseline();
    EXPECT_EQ(entry.whose(kEntry.scope), Whose::baseline);
    EXPECT_EQ(entry.whose_strict(false), Whose::baseline);
}

TEST(Claim, OfTheBaselineIsNone) {
    BaselineEntry entry = announced();
    EXPECT_FALSE(entry.settle("default", false).is_ours());
    EXPECT_FALSE(entry.has_claim());
    EXPECT_EQ(entry.whose("smt"), Whose::foreign);
}

TEST(Claim, OfWhatSomebodyElseWroteIsNone) {
    BaselineEntry entry = announced();
    EXPECT_EQ(entry.settle("numa", true).word, Whose::foreign);
    EXPECT_THAT(entry.may_hold, IsEmpty());
    EXPECT_EQ(entry.may_strict, true) << "which is ours";
}

TEST(Claim, StaysWideWhereTheStrictnessWasNotRead) {
    BaselineEntry entry = announced();
    entry.settle("smt", {});
    EXPECT_EQ(entry.whose_strict(false), Whose::baseline);
    EXPECT_EQ(entry.whose_strict(true), Whose::ours);
}

TEST_F(Baseline, ThatIsExternalKeepsItsOrder) {
    tree_.write("baseline.json",
                "{\"entries\":[{\"name\":\"a\",\"inode\":1,\"scope\":\"default\",\"strict\":null,"
                "\"may_hold\":[],\"may_strict\":null,\"order\":\"\",\"external\":true}]}");
    ASSERT_TRUE(store_.load());
    EXPECT_TRUE(store_.find("a")->external);
    EXPECT_EQ(store_.find("a")->holder, Holder::policy);
    store_.find("a")->hold(Holder::pin, "cpu");
    ASSERT_TRUE(store_.save());
    BaselineStore later(path_);
    ASSERT_TRUE(later.load());
    EXPECT_EQ(*later.find("a"), *store_.find("a"));
}

}  // namespace
}  // namespace wq
