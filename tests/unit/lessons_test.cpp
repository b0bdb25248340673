// SPDX-License-Identifier: LGPL-2.1-or-later
// What the verdicts on a class of workqueues say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "ctl/fleet/learned.h"
#include "verdict_files.h"

namespace wq::ctl {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;
using enum Judgement;

constexpr std::int64_t kAskedAt = 1'000'000'000;

struct Verdict {
    std::string baseline, candidate;
    Judgement outcome;
    int hours;  // ago; below 0: made under a wrong clock
    std::string target = "kcryptd-254:0-1";
    std::string cpus = {};
    std::string counters = "latency 0";
    [[nodiscard]] VerdictRecord record() const {
        VerdictRecord out;
        out.key = test::key_of(class_of(target), "6.12", "8 CPUs", baseline, candidate);
        out.key.counters = counters;
        out.cpus = cpus;
        out.target = target;
        out.time = kAskedAt - hours * std::int64_t{3600};
        out.outcome = outcome;
        return out;
    }
};

using Words = std::vector<std::string>;

std::vector<LearnedRule> learned_from(const std::vector<VerdictRecord>& records) {
    return rules_of({records, "6.12", "8 CPUs", kAskedAt});
}

// The rule as text: "smt strict", "leave", or why there is none.
std::string text(const LearnedRule& rule) {
    return !rule.why_none.empty() ? rule.why_none : rule.arm ? rule.arm->name() : "leave";
}

// The evidence of RULE without targets and times: "smt against cache: improved". Verdicts that say the
// opposite begin with "not ".
Words evidence(const LearnedRule& rule) {
    Words out;
    for (const std::string& note : rule.notes) {
        const auto begin = note.find("UTC: ") + 5;
        out.push_back((note.starts_with("an earlier one says the opposite: ") ? "not " : "") +
                      note.substr(begin, note.find(", ", begin) - begin));
    }
    return out;
}

constexpr const char* kWrongStep = "depends on a verdict with a time in the future (wrong clock)";
constexpr const char* kMoved = "depends on a scope that @default had and that this policy does not set";

TEST(Lessons, OfVerdicts) {
    const struct {
        const char* what;
        std::vector<Verdict> verdicts;
        Words rules;          // by class
        Words evidence = {};  // of the first one; empty: not compared
    } rows[] = {
        {"nothing", {}, {}},
        {"a gain", {{"cache", "smt", improved, 1}}, {"smt"}, {"smt against cache: improved"}},
        {"a loss", {{"cache", "smt", regressed, 1}}, {"leave"}, {"smt against cache: regressed"}},
        {"undecided", {{"cache", "smt", undecided, 1}}, {"is undecided"}, {"smt against cache: undecided"}},
        {"strict", {{"cache", "smt strict", improved, 1}}, {"smt strict"}},
        {"however old", {{"cache", "smt", improved, 250'000}}, {"smt"}},
        {"a wrong clock", {{"cache", "smt", improved, -1}}, {"has a time in the future (wrong clock)"}},
        {"a scope of another version",
         {{"cache", "die", improved, 1}},
         {"has scopes that this version does not know"}},
        {"a loss with one", {{"cache", "die", regressed, 1}}, {"leave"}},
        {"classes are apart",
         {{"cache", "smt", improved, 1},
          {"cache", "system", regressed, 1, "writeback"},
          {"cache", "numa", improved, 1, "@default"}},
         {"numa", "smt", "leave"}},
        // A rule is for a class on the CPUs of the last verdict; verdicts on other CPUs do not count.
        {"other CPUs",
         {{"cache", "smt", improved, 3, "a", "0-11"}, {"smt", "cpu", improved, 2, "a", "0-23"}},
         {"cpu"},
         {"cpu against smt: improved"}},
        {"the first CPUs again",
         {{"cache", "smt", improved, 3, "a", "0-11"},
          {"smt", "cpu", improved, 2, "a", "0-23"},
          {"cache", "numa", regressed, 1, "a", "0-11"}},
         {"smt"},
         {"smt against cache: improved"}},
        {"the last of the same arms, whatever it was judged by",
         {{"cache", "smt", improved, 2},
          {"cache", "smt", regressed, 1, "kcryptd-254:12-3", "", "latency+ 0"}},
         {"leave"}},
        {"also if it is undecided",
         {{"cache", "smt", improved, 2}, {"cache", "smt", regressed, 1}, {"cache", "smt", undecided, 0}},
         {"is undecided"}},
        // The verdicts of a search.
        {"a loser",
         {{"cache_shard", "cache", regressed, 4}, {"cache_shard", "system", undecided, 3}},
         {"leave"}},
        {"what lost against a winner is no reason to leave what the kernel had",
         {{"cache_shard", "cache", regressed, 4},
          {"cache_shard", "system", undecided, 3},
          {"cache_shard", "smt", improved, 2},
          {"smt", "cpu", regressed, 1}},
         {"smt"},
         {"smt against cache_shard: improved"}},
        {"the last winner stands",
         {{"cache_shard", "smt", improved, 2}, {"smt", "cpu", improved, 1}},
         {"cpu"},
         {"smt against cache_shard: improved", "cpu against smt: improved"}},
        {"an incumbent that is tried again falls with all that rested on it",
         {{"cache", "smt", improved, 3}, {"smt", "cpu", improved, 2}, {"cache", "smt", regressed, 1}},
         {"leave"}},
        {"the last of two gains",
         {{"cache", "smt", improved, 3}, {"cache", "system", improved, 2}},
         {"system"}},
        {"the last comparison had it for its incumbent",
         {{"cache", "smt", improved, 3}, {"cache", "system", improved, 2}, {"smt", "cpu", regressed, 1}},
         {"smt"}},
        {"and then the kernel's",
         {{"cache", "smt", improved, 3},
          {"cache", "system", improved, 2},
          {"smt", "cpu", regressed, 1},
          {"cache", "numa", regressed, 0}},
         {"system"}},
        {"a step by a wrong clock is not built upon",
         {{"cache", "smt", improved, -1}, {"smt", "cpu", improved, 1}},
         {kWrongStep}},
        {"smt is not the kernel's, so leave would be wrong",
         {{"cache", "smt", improved, -1}, {"smt", "cpu", regressed, 1}},
         {kWrongStep}},
        {"nor is such a step taken from what the kernel had",
         {{"cache", "smt", improved, -1}, {"cache", "numa", regressed, 1}},
         {"leave"},
         {"numa against cache: regressed"}},
        {"a circle",
         {{"cache", "system", improved, 2}, {"system", "cache", improved, 1}},
         {"contradicts an earlier one"}},
        {"the same, the other way round",
         {{"cache", "system", improved, 2}, {"system", "cache", regressed, 1}},
         {"system"}},
        {"an undecided comparison elsewhere hides nothing",
         {{"cache", "smt", improved, 2}, {"numa", "smt", undecided, 1, "kcryptd-254:1-7"}},
         {"smt"}},
        // A workqueue that follows @default begins where @default is.
        {"others get smt by @default",
         {{"cache", "smt", improved, 1, "@default"}, {"smt", "cpu", regressed, 1, "writeback"}},
         {"smt", "leave"}},
        {"others stay at cache, which was not tried",
         {{"cache", "smt", improved, -1, "@default"}, {"smt", "cpu", regressed, 1, "writeback"}},
         {"has a time in the future (wrong clock)", kMoved}},
        {"smt may have been kept",
         {{"cache", "smt", undecided, 1, "@default"}, {"smt", "cpu", regressed, 1, "writeback"}},
         {"is undecided", kMoved}},
        {"smt was not ours",
         {{"cache", "smt", regressed, 1, "@default"}, {"smt", "cpu", regressed, 1, "writeback"}},
         {"leave", "leave"}},
        {"against the kernel's",
         {{"cache", "smt", undecided, 1, "@default"}, {"cache", "cpu", regressed, 1, "writeback"}},
         {"is undecided", "leave"}},
        // Earlier verdicts that say the opposite are named.
        {"the opposite, of whatever judge, but not of another class or clock",
         {{"cache", "smt", improved, 4, "a", "", "latency+ 0"},
          {"cache", "smt", undecided, 3, "a"},
          {"cache", "smt", improved, -1, "a"},
          {"cache", "smt", improved, 2, "b"},
          {"cache", "smt", regressed, 1, "a"}},
         {"leave", "smt"},
         {"not smt against cache: improved", "smt against cache: regressed"}},
        {"the opposite on other CPUs",
         {{"cache", "smt", regressed, 1, "a", "0-11"}, {"cache", "smt", improved, 0, "a"}},
         {"smt"},
         {"smt against cache: improved"}},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        std::vector<VerdictRecord> records;
        for (const Verdict& verdict : row.verdicts) records.push_back(verdict.record());
        const auto rules = learned_from(records);
        Words texts;
        for (const LearnedRule& rule : rules) texts.push_back(text(rule));
        EXPECT_THAT(texts, ElementsAreArray(row.rules));
        if (row.evidence.empty()) continue;
        EXPECT_THAT(evidence(rules.at(0)), ElementsAreArray(row.evidence));
    }
}

TEST(Lessons, OnlyWhatWasJudgedOnThisKernelAndTopology) {
    const VerdictRecord good = Verdict{"cache", "smt", improved, 1}.record();
    for (const auto& change : std::vector<void (*)(VerdictRecord&)>{
             [](VerdictRecord& r) { r.judged = false; }, [](VerdictRecord& r) { r.key.kernel = "6.13"; },
             [](VerdictRecord& r) { r.key.topology = "9 CPUs"; }}) {
        VerdictRecord changed = good;
        change(changed);
        EXPECT_THAT(learned_from({changed}), IsEmpty());
    }
    EXPECT_EQ(learned_from({good}).size(), 1U);
}

TEST(ArmNamed, ReadsWhatNameWrites) {
    for (const Scope scope : kAllScopes)
        for (const auto& strict : {std::optional<bool>(), std::optional(true)}) {
            const Arm arm{scope, std::string(name_of(scope)), strict};
            EXPECT_EQ(arm_named(arm.name()), arm);
        }
    for (const char* name : {"", " strict", "default", "smt  strict", "smt Strict"})
        EXPECT_FALSE(arm_named(name)) << name;
}

}  // namespace
}  // namespace wq::ctl
