// SPDX-License-Identifier: LGPL-2.1-or-later
#include "owned/owned.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "temp_tree.h"

namespace wq {
namespace {

const Owned kEntry = {
    "kcryptd-254:0-1", 4711, {Knob::scope, "default", {"smt", "cache"}}, Attribute{Knob::strict, "0", {"1"}},
    Holder::pin,       "smt"};
// A module parameter has no strictness file.
const Owned kDefaultEntry = {"@default", 1ULL << 40, {Knob::scope, "cache"}};
const Owned kMask = {"kcryptd-254:0-1", 4711, {Knob::mask, "00,000000ff", {"f3"}}};

class OwnedStoreTest : public testing::Test {
  protected:
    ino_t inode() {
        struct stat st = {};
        EXPECT_EQ(::stat(path_.c_str(), &st), 0);
        return st.st_ino;
    }
    // The entries that a later process loads are those of store_.
    void expect_saved() {
        ASSERT_TRUE(store_.save());
        OwnedStore later(path_);
        ASSERT_TRUE(later.load());
        for (const Knob file : {Knob::scope, Knob::mask})
            EXPECT_EQ(later.entries(file), store_.entries(file));
    }
    test::TempTree tree_;
    std::string path_ = tree_.path("owned.json");
    OwnedStore store_{path_};
};

TEST_F(OwnedStoreTest, ComesBackAsItWas) {
    for (const Owned& entry : {kEntry, kDefaultEntry, kMask}) store_.put(entry);
    expect_saved();
    EXPECT_EQ(*store_.find(kEntry.name), kEntry);
    EXPECT_EQ(*store_.find(kMask.name, Knob::mask), kMask) << "a name has an entry of each kind";
    EXPECT_EQ(store_.find("other"), nullptr);
    for (const std::string name : {"a\"b", "a\\b", "a\nb", "caf\xc3\xa9"}) {
        Owned entry = kEntry;
        entry.name = name;
        store_.put(entry);
    }
    expect_saved();
}

TEST_F(OwnedStoreTest, SavesAChangeOfAnything) {
    const std::function<void(Owned&)> changes[] = {[](Owned& e) { e.inode++; },
                                                   [](Owned& e) { e.main.baseline = "numa"; },
                                                   [](Owned& e) { e.main.allow("system"); },
                                                   [](Owned& e) { e.main.claim.clear(); },
                                                   [](Owned& e) { e.strict.reset(); },
                                                   [](Owned& e) { e.strict->baseline = "1"; },
                                                   [](Owned& e) { e.strict->claim.clear(); },
                                                   [](Owned& e) { e.hold(Holder::revert); },
                                                   [](Owned& e) { e.hold(Holder::revert, "`a` must stay"); },
                                                   [](Owned& e) { e.hold(Holder::pin, "cpu"); },
                                                   [](Owned& e) { e.hold(Holder::slot); },
                                                   [](Owned& e) { e.external = true; }};
    for (const auto& change : changes) {
        store_.put(kEntry);
        EXPECT_TRUE(store_.save());
        change(*store_.find(kEntry.name));
        EXPECT_NE(*store_.find(kEntry.name), kEntry);
        expect_saved();
    }
}

TEST_F(OwnedStoreTest, HasTheKeysThatScriptsRead) {
    store_.put(kEntry);
    ASSERT_TRUE(store_.save());
    EXPECT_EQ(nlohmann::json::parse(tree_.read("owned.json")).at("entries").at(0),
              nlohmann::json::parse(R"({"target": "kcryptd-254:0-1", "file": "affinity_scope", "inode": 4711,
        "baseline": "default", "claim": ["smt", "cache"], "holder": "pin", "note": "smt", "external": false,
        "strict": {"file": "affinity_strict", "baseline": "0", "claim": ["1"]}})"));
}

TEST_F(OwnedStoreTest, IsWrittenOnlyWhereItDiffersFromTheFile) {
    store_.put(kEntry);
    ASSERT_TRUE(store_.save());
    const ino_t first = inode();
    ASSERT_TRUE(store_.save());
    store_.put(kEntry);
    store_.find(kEntry.name)->main.allow("smt");  // already in the list
    ASSERT_TRUE(store_.save());
    EXPECT_EQ(inode(), first);

    OwnedStore later(path_);
    ASSERT_TRUE(later.load());
    ASSERT_TRUE(later.save());
    EXPECT_EQ(inode(), first) << "nor by one that only loaded it";

    later.find(kEntry.name)->main.allow("numa");
    ASSERT_TRUE(later.save());
    EXPECT_NE(inode(), first);
    later.remove(kEntry.name);
    ASSERT_TRUE(later.save());
    ASSERT_TRUE(store_.load());
    EXPECT_THAT(store_.entries(), testing::IsEmpty());
}

// A number of 2^64 or more, or a negative one, could be converted into an inode.
TEST_F(OwnedStoreTest, ThatIsNotOursIsAnErrorAndIsNeverReplaced) {
    const auto entry = [](const std::string& changes) {
        auto out = nlohmann::json::parse(R"({"target": "a", "file": "affinity_scope", "inode": 1,
            "baseline": "default", "claim": [], "strict": null, "holder": "policy", "note": "", "external": false})");
        out.update(nlohmann::json::parse(changes));
        return nlohmann::json{{"version", 1}, {"entries", {out}}}.dump();
    };
    tree_.write("owned.json", entry("{}"));
    ASSERT_TRUE(OwnedStore(path_).load());
    std::vector<std::string> broken = {"", "{\"version\":1}"};
    for (const char* changes :
         {R"({"inode": 18446744073709551616})", R"({"inode": -1})", R"({"file": "cpu"})",
          R"({"file": "value", "target": "/sys/x"})", R"({"file": "command"})", R"({"file": "device"})",
          R"({"target": "/sys/x"})", R"({"file": "affinity_strict", "baseline": "0"})",
          R"({"file": "cpumask"})", R"({"file": "cpumask", "baseline": "f", "claim": ["x"]})",
          R"({"holder": "later"})", R"({"holder": "udev"})", R"({"strict": 0})", R"({"more": 0})",
          R"({"strict": {"file": "affinity_strict", "baseline": "2", "claim": []}})",
          R"({"strict": {"file": "cpumask", "baseline": "1", "claim": []}})"})
        broken.push_back(entry(changes));
    for (const std::string& text : broken) {
        tree_.write("owned.json", text);
        OwnedStore store(path_);
        const auto loaded = store.load();
        ASSERT_FALSE(loaded) << text;
        EXPECT_THAT(loaded.error().text, testing::HasSubstr(path_));
        EXPECT_THAT(store.all(), testing::IsEmpty());
        store.put(kEntry);
        EXPECT_FALSE(store.save());
        EXPECT_EQ(tree_.read("owned.json"), text) << "kept for people to look at";
    }
}

// ---- who wrote a value

TEST(Claim, OfMasksComparesSetsOfCpus) {
    Attribute mask{Knob::mask, "00,000000ff"};
    EXPECT_EQ(mask.whose("ff"), Whose::baseline);
    mask.announce("0f");
    EXPECT_THAT(mask.claim, testing::ElementsAre("00,000000ff", "0f"));
    EXPECT_EQ(mask.whose("f"), Whose::ours);
    EXPECT_EQ(mask.settle("000f"), Whose::ours);
    EXPECT_EQ(mask.whose("ff"), Whose::foreign) << "somebody put it back";
    EXPECT_EQ(plain(Knob::mask, mask.baseline), "0-7");
}

TEST(Claim, HasTheWordThatTheKernelMayMakeOfIt) {
    Attribute scope{Knob::scope, "default"};
    scope.announce("cache_shard");
    EXPECT_THAT(scope.claim, testing::ElementsAre("default", "cache_shard", "cache"));
}

}  // namespace
}  // namespace wq
