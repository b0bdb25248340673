// SPDX-License-Identifier: LGPL-2.1-or-later
// The store of verdicts on disk.
#include "evidence/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Verdicts : public testing::Test {
  protected:
    static VerdictRecord record(std::int64_t time = 1000) {
        VerdictRecord r;
        r.key = {"6.12", "8 CPUs", "kcryptd-#", "cache", "smt", "alpha 0.05", "0-7"};
        r.target = "kcryptd-1";
        r.time = time;
        r.outcome = Judgement::regressed;
        r.standing = {"latency", 9, 4.5, -2, {3.1, Effect::Interval{1.0, 5.2}}};
        r.settings = JudgeSettings{.alpha = 0.025, .tolerance = 0.01, .max_pairs = 17};
        return r;
    }
    [[nodiscard]] json on_disk() const { return json::parse(tree_.read(kFile)); }
    void write(const json& document) { tree_.write(kFile, document.dump()); }

    static constexpr const char* kFile = "var/lib/wq-tuned/verdicts.json";
    test::TempTree tree_;
    VerdictStore store_{tree_.path(kFile)};
};

TEST_F(Verdicts, ComeBackAsTheyWere) {
    ASSERT_TRUE(store_.load());
    ASSERT_TRUE(store_.add(record()).save());
    VerdictStore again(tree_.path(kFile));
    ASSERT_TRUE(again.load());
    ASSERT_THAT(again.records(), SizeIs(1));
    EXPECT_EQ(to_json(again.records()[0]), to_json(record()));
    ASSERT_NE(again.latest(record().key), nullptr);
    EXPECT_EQ(again.latest(record().key)->outcome, Judgement::regressed);
}

TEST_F(Verdicts, TheLatestThatWasJudgedCounts) {
    VerdictRecord later = record(2000);
    later.outcome = Judgement::improved;
    VerdictRecord cut_off = record(3000);
    cut_off.judged = false;
    for (const auto& r : {record(), later, cut_off}) ASSERT_TRUE(store_.add(r).save());
    EXPECT_EQ(store_.latest(record().key)->outcome, Judgement::improved);
}

TEST_F(Verdicts, AnythingElseIsAnotherKey) {
    ASSERT_TRUE(store_.add(record()).save());
    for (std::string VerdictKey::*part :
         {&VerdictKey::kernel, &VerdictKey::topology, &VerdictKey::kind, &VerdictKey::reference,
          &VerdictKey::candidate, &VerdictKey::judge, &VerdictKey::cpus}) {
        VerdictKey key = record().key;
        key.*part += "x";
        EXPECT_EQ(store_.latest(key), nullptr);
    }
}

TEST_F(Verdicts, TheOldestGiveWay) {
    nlohmann::json verdicts = nlohmann::json::array();
    for (int i = 0; i < 1000; i++) {
        VerdictRecord r = record(i);
        r.judged = i % 100 == 0;
        verdicts.push_back(to_json(r));
    }
    write({{"version", 1}, {"verdicts", verdicts}});
    ASSERT_TRUE(store_.load());
    for (int i = 1000; i < 1002; i++) ASSERT_TRUE(store_.add(record(i)).save());
    EXPECT_THAT(store_.records(), SizeIs(1000));
    EXPECT_EQ(store_.records().front().time, 0);
    EXPECT_EQ(store_.records()[1].time, 3) << "those that were cut off go first";
}

TEST_F(Verdicts, TheLastOfItsKindOutlivesOneThatWasJudgedAgain) {
    const auto of = [](const std::string& kind, int i) {
        VerdictRecord r = record(i);
        r.key.kind = kind;
        return r;
    };
    nlohmann::json verdicts = nlohmann::json::array({to_json(of("rare-#", 0))});
    for (int i = 1; i < 1000; i++) verdicts.push_back(to_json(record(i)));
    write({{"version", 1}, {"verdicts", verdicts}});
    ASSERT_TRUE(store_.load());
    ASSERT_TRUE(store_.add(record(1000)).save());
    VerdictStore again(tree_.path(kFile));
    ASSERT_TRUE(again.load());
    EXPECT_THAT(again.records(), SizeIs(1000));
    EXPECT_EQ(again.records()[1].time, 2);
    EXPECT_NE(again.latest(of("rare-#", 0).key), nullptr);
}

TEST_F(Verdicts, AnEvidenceThatIsHugeIsStillANumber) {
    VerdictRecord r = record();
    r.standing.log_regressed = 5000;
    r.standing.log_improved = -5000;
    ASSERT_TRUE(store_.add(r).save());
    VerdictStore again(tree_.path(kFile));
    EXPECT_TRUE(again.load());
}

TEST_F(Verdicts, ADiskThatIsFullForgetsNothingThatTheDaemonKnows) {
    tree_.write("var/lib/wq-tuned", "not a folder");
    EXPECT_FALSE(store_.add(record()).save());
    EXPECT_NE(store_.latest(record().key), nullptr);
}

TEST_F(Verdicts, WhatIsNoStoreAndCannotBeSetAsideIsSaidToBeThere) {
    tree_.write(kFile, "{");
    tree_.add(test::File(std::string(kFile) + ".broken/in/the/way"));
    const auto loaded = store_.load();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().text, HasSubstr("; cannot be renamed: "));
    EXPECT_EQ(tree_.read(kFile), "{");
}

TEST_F(Verdicts, WhatIsNoStoreIsSetAsideAndLearningStartsAnew) {
    ASSERT_TRUE(store_.add(record()).save());
    const json good = on_disk();
    const auto with = [&](const char* key, const json& value) {
        json bad = good;
        bad["verdicts"][0][key] = value;
        return bad.dump();
    };
    const std::string text = good.dump();
    for (const std::string& bad : {std::string(),
                                   std::string("{"),
                                   std::string("[]"),
                                   std::string("null"),
                                   text.substr(0, text.size() / 2),
                                   std::string("\0\0\0", 3),
                                   json{{"version", 2}, {"verdicts", {}}}.dump(),
                                   with("kernel", 6),
                                   with("pairs", -1),
                                   with("time", -5),
                                   with("time", 1e18),
                                   with("comparison", 4294967296),
                                   with("verdict", "splendid"),
                                   with("e_regressed", nullptr),
                                   with("effect_percent", "NaN"),
                                   with("interval_percent", json::array({1})),
                                   with("judged", 1),
                                   with("alpha", 0),
                                   with("alpha", 0.6),
                                   with("tolerance", -1),
                                   with("max_pairs", nullptr),
                                   with("target", json::object())}) {
        tree_.write(kFile, bad);
        VerdictStore store(tree_.path(kFile));
        const auto loaded = store.load();
        ASSERT_FALSE(loaded) << bad;
        EXPECT_THAT(loaded.error().text, HasSubstr("; renamed to ")) << bad;
        EXPECT_THAT(store.records(), IsEmpty()) << bad;
        EXPECT_EQ(tree_.read(std::string(kFile) + ".broken"), bad);
        EXPECT_TRUE(VerdictStore(tree_.path(kFile)).load()) << "the next start has nothing to complain of";
    }
}

TEST_F(Verdicts, SaysInPlainWordsWhatIsWrongWithTheFile) {
    for (const auto& [bad, says] :
         std::vector<std::pair<std::string, std::string>>{{"", "empty"},
                                                          {"{", "cut off"},
                                                          {R"({"version": 1, "verd)", "cut off"},
                                                          {"{\"version\": 1,\n", "cut off"},
                                                          {"nonsense", "not JSON"},
                                                          {"{} {}", "not JSON"},
                                                          {"{}", "key 'version' not found"},
                                                          {R"({"version": 2})", "unknown version"}}) {
        tree_.write(kFile, bad);
        const auto read = VerdictStore(tree_.path(kFile)).read();
        ASSERT_FALSE(read) << bad;
        EXPECT_EQ(read.error().text, tree_.path(kFile) + ": " + says) << bad;
    }
}

TEST_F(Verdicts, WhatCannotBeReadIsSetAsideToo) {
    tree_.add(test::Dir(kFile, {}));
    VerdictStore store(tree_.path(kFile));
    const auto loaded = store.load();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().text, HasSubstr("; renamed to "));
    EXPECT_TRUE(tree_.exists(std::string(kFile) + ".broken"));
    EXPECT_TRUE(store.add(record()).save()) << "what comes next is on disk again";
}

TEST_F(Verdicts, WhoOnlyReadsSetsNothingAside) {
    tree_.write(kFile, "{");
    EXPECT_FALSE(VerdictStore(tree_.path(kFile)).read());
    EXPECT_EQ(tree_.read(kFile), "{");
}

TEST(ClassOf, PutsASignForEachRunOfDigits) {
    EXPECT_EQ(class_of("kcryptd-254:0-1"), "kcryptd-#:#-#");
    EXPECT_EQ(class_of("kcryptd-254:10-321"), "kcryptd-#:#-#");
    EXPECT_EQ(class_of("writeback"), "writeback");
    EXPECT_EQ(class_of("9p4"), "#p#");
    EXPECT_EQ(class_of("@default"), "@default");
}

}  // namespace
}  // namespace wq
