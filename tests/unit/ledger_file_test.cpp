// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/ledger_file.h"

#include <gmock/gmock.h>

#include "fake_log.h"
#include "temp_tree.h"

namespace wq {
namespace {

constexpr std::uint64_t kMinute = 60'000'000;

LedgerEntry entry_of(const std::string& kind) {
    LedgerEntry out;
    out.key.kind = kind;
    out.columns = Comparison(std::vector<ComparedCounter>{{.name = "latency"}}).columns();
    return out;
}

// Does the work only when the test calls it.
class Later : public RecordWriter {
  public:
    void put(const std::string& /*name*/, Work work, Done done) override {
        works.push_back([=] { done(work()); });
    }
    std::vector<std::function<void()>> works;
};

class LedgerFileTest : public testing::Test {
  protected:
    test::TempTree tree_{test::Dir("var")};
    std::string path_ = tree_.path("var/lib/ledger.json");
    test::FakeLog log_;
    WriteAtOnce at_once_;
};

TEST_F(LedgerFileTest, ComesBackAfterARestart) {
    LedgerFile file(path_, at_once_, log_);
    file.load();
    file.change().put(entry_of("a"));
    file.save(1);
    LedgerFile next(path_, at_once_, log_);
    next.load();
    EXPECT_EQ(next.ledger().entries().size(), 1U);
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(LedgerFileTest, ABrokenFileIsSetAsideAndSaid) {
    tree_.write("var/lib/ledger.json", "{");
    LedgerFile file(path_, at_once_, log_);
    file.load();
    EXPECT_TRUE(file.ledger().entries().empty());
    EXPECT_EQ(log_.count(Event::verdicts_broken), 1U);
    EXPECT_TRUE(tree_.exists("var/lib/ledger.json.broken"));
    EXPECT_FALSE(tree_.exists("var/lib/ledger.json"));
}

TEST_F(LedgerFileTest, AFileThatCannotBeReadIsNotReplaced) {
    tree_.add(test::Dir("var/lib/ledger.json"));
    LedgerFile file(path_, at_once_, log_);
    file.load();
    EXPECT_EQ(log_.count(Event::verdicts_broken), 1U);
    EXPECT_THAT(file.why_not(1), testing::HasSubstr("ledger.json"));
    file.change().put(entry_of("a"));
    file.save(1);
    EXPECT_TRUE(tree_.exists("var/lib/ledger.json"));
    EXPECT_FALSE(tree_.exists("var/lib/ledger.json.broken"));
    EXPECT_EQ(log_.lines.size(), 1U);
}

TEST_F(LedgerFileTest, IsWrittenOnceAMinuteAndOnlyWhereThereIsNews) {
    Later later;
    LedgerFile file(path_, later, log_);
    file.save_in_time(kMinute);
    EXPECT_TRUE(later.works.empty());
    file.change().put(entry_of("a"));
    file.save_in_time(kMinute);
    file.change().put(entry_of("b"));
    file.save_in_time(2 * kMinute - 1);
    EXPECT_EQ(later.works.size(), 1U);
    file.save_in_time(2 * kMinute);
    EXPECT_EQ(later.works.size(), 2U);
}

TEST_F(LedgerFileTest, ADiskThatDoesNotAnswerIsAReasonAndSoIsOneThatFails) {
    Later later;
    LedgerFile file(path_, later, log_);
    file.change().put(entry_of("a"));
    file.save(kMinute);
    EXPECT_EQ(file.why_not(kMinute + 1), "");
    EXPECT_EQ(file.why_not(kMinute + 3'000'000), "the disk has not answered for 3 s");
    tree_.write("var/lib", "no folder");
    later.works.at(0)();
    EXPECT_THAT(file.why_not(kMinute + 3'000'000), testing::HasSubstr("ledger.json"));
    EXPECT_EQ(log_.at_least(LOG_WARNING), 1U);
    std::remove(tree_.path("var/lib").c_str());
    file.save_in_time(3 * kMinute);
    later.works.at(1)();
    EXPECT_EQ(file.why_not(3 * kMinute), "");
}

}  // namespace
}  // namespace wq
