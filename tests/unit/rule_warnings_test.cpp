// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the warnings about patterns with fnmatch(3), for all names of up to three of a few letters.
#include "policy/rule_warnings.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "policy_texts.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// All words of 1 to LENGTH letters.
std::vector<std::string> words_of(const std::string& letters, std::size_t length) {
    std::vector<std::string> out{""};
    for (std::size_t begin = 0, round = 0; round < length; ++round) {
        const std::size_t end = out.size();
        for (; begin < end; ++begin)
            for (const char letter : letters) out.push_back(out[begin] + letter);
    }
    out.erase(out.begin());
    return out;
}

bool matches(const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

TEST(RuleWarnings, APatternThatNoNameMatches) {
    for (const auto& [pattern, why] : std::vector<std::pair<std::string, std::string>>{
             {"kcryptd-[", "its bracket is not closed"},
             {"kcryptd-[0-9", "its bracket is not closed"},
             {"[a\\", "its bracket is not closed"},
             {"[]", "its bracket is not closed"},
             {"[!]*", "its bracket is not closed"},
             {"[[:alpha:]", "its bracket is not closed"},
             {"nvme/wq", "sysfs replaces \"/\" in a name with \"!\""},
             {"*/*", "sysfs replaces \"/\""},
             {"nvme\\/wq", "sysfs replaces \"/\""},
             {"[z-a]*", "\"[z-a]\" matches no character"},
             {"a[/]b", "\"[/]\" matches no character"},
             {"writeback\\", "nothing follows the backslash"},
             {"kcryptd-.*", "it is a regular expression, not a glob: `*` is any text"},
             {"^nvme", "it is a regular expression"},
             {"foo$", "it is a regular expression"},
             {"writeback|raid5wq", "it is a regular expression"},
             {"xfs-\\d+", "it is a regular expression"},
             {"kcryptd-[0-9]+:*", "it is a regular expression"},
             {"{writeback,kcryptd-*}", "braces have no meaning in it: write a list, match = [\""},
             {"nvme-{a,b,c}-wq", "braces have no meaning"},
             {"kworker/u16:3", "it names a thread; `wq-tunectl explain`"},
             {"kworker*", "it names a thread"},
             {"events_unbound",
              "it is not in sysfs (the kernel's shared workqueue); only @default reaches it"},
             {"btrfs-endio", "(btrfs); only @default"},
             {"btrfs*", "(btrfs); only @default"},
             {"nfsiod", "(NFS); only @default"},
             {"rpc*", "(NFS); only @default"},
             {"loop?", "(loop devices); only @default"},
             {std::string(32, 'x'), "a name has at most 31 characters"},
             {std::string(20, '?') + "*" + std::string(12, 'x'), "a name has at most 31 characters"}})
        EXPECT_THAT(why_never_matches(pattern), HasSubstr(why)) << pattern;
    std::istringstream fine(
        "* kcryptd-* kcryptd-[0-9]* []x] [!]] [[:alpha:]]* [a-] nvme!wq [!/] [\\]] \\[ a] {ab} [é] n* dm. "
        "gve-0000:01:00.* (a) nf_ft_offload_* " +
        std::string(31, 'x') + " " + std::string(31, '?') + "*");
    for (std::string pattern; fine >> pattern;) EXPECT_EQ(why_never_matches(pattern), "") << pattern;
}

TEST(RuleWarnings, WhatNeverMatchesDoesNot) {
    const auto names = words_of("ab-]!", 3);
    unsigned found = 0;
    for (const std::string& pattern : words_of("ab*?[]!-\\/", 4)) {
        if (why_never_matches(pattern).empty()) continue;
        found++;
        for (const std::string& name : names) ASSERT_FALSE(matches(pattern, name)) << pattern << " " << name;
    }
    EXPECT_GT(found, 1000U);
}

// Pairs of an earlier and a later pattern.
TEST(RuleWarnings, AnEarlierPatternCovers) {
    const char* const covered[] = {
        "* *",         "* kcryptd-*",          "* ?[ab]",        "kcryptd* kcryptd-*", "k?ryptd kcryptd",
        "[kw]* [kw]*", "kcryptd* kcryptd-253", "[kw]* writeback"};
    const char* const open[] = {
        "kcryptd-* kcryptd*", "kcryptd-* *", "a b", "a a*", "a? a*", "a* ?*", "a\\* a*"};
    const auto covers_in = [](const std::string& pair) {
        const auto space = pair.find(' ');
        return covers(pair.substr(0, space), pair.substr(space + 1));
    };
    for (const char* pair : covered) EXPECT_TRUE(covers_in(pair)) << pair;
    for (const char* pair : open) EXPECT_FALSE(covers_in(pair)) << pair;
}

TEST(RuleWarnings, WhatCoversDoes) {
    const auto names = words_of("ab-]*", 3);
    const auto patterns = words_of("ab*?[]\\", 3);
    unsigned found = 0;
    for (const std::string& earlier : patterns)
        for (const std::string& later : patterns) {
            if (earlier == later || !covers(earlier, later)) continue;
            found++;
            for (const std::string& name : names)
                ASSERT_LE(matches(later, name), matches(earlier, name))
                    << earlier << " " << later << " " << name;
        }
    EXPECT_GT(found, 1000U);
}

// ---- warnings of a policy

std::vector<std::string> warnings_of(const std::vector<std::string>& texts) {
    PolicyErrors warnings;
    EXPECT_TRUE(test::load_texts(texts, {}, &warnings));
    std::vector<std::string> out;
    for (const PolicyError& warning : warnings) out.push_back(warning.text());
    return out;
}

std::string rule(const std::string& match, const std::string& table = "workqueue") {
    return "[[" + table + "]]\nmatch = \"" + match + "\"\n";
}

// "B" of FILE:LINE, after "A" at FILE:LINE.
std::string useless(const char* later, const char* at, const char* earlier, const char* at_earlier) {
    return fmt::format("{}:9: \"{}\" never applies: \"{}\" at {} comes first and matches the same names", at,
                       later, earlier, at_earlier);
}

// A drop-in may take all of another file (conf/examples/30-dm-crypt.toml does it), a rule that expires leaves
// its names to later ones, and a host table is looked at for itself, whether or not it matches.
TEST(RuleWarnings, ARuleThatNeverAppliesIsToldWithBothPlaces) {
    const std::string until = "expires = \"2027-01-31\"\n";
    const std::string host = "[[host]]\nname = \"h\"\nwhen.arch = \"none\"\n";
    EXPECT_THAT(
        warnings_of({rule("a") + rule("*") + rule("b") + rule("*")}),
        ElementsAre(useless("b", "0.toml:6", "*", "0.toml:4"), useless("*", "0.toml:8", "*", "0.toml:4")));
    EXPECT_THAT(warnings_of({rule("*") + rule("a"), rule("*")}),
                ElementsAre(useless("a", "0.toml:4", "*", "0.toml:2")));
    EXPECT_THAT(warnings_of({rule("a*") + rule("a*") + until}),
                ElementsAre(useless("a*", "0.toml:4", "a*", "0.toml:2")));
    EXPECT_THAT(warnings_of({host + rule("a[", "host.workqueue") + rule("*", "host.workqueue") +
                             rule("b", "host.workqueue")}),
                ElementsAre(HasSubstr("0.toml:5:9: \"a[\" matches no workqueue"),
                            HasSubstr("0.toml:9:9: \"b\" never applies")));
    for (const std::vector<std::string>& fine : std::vector<std::vector<std::string>>{
             {rule("a") + rule("a*") + rule("b*") + rule("*")},
             {rule("a") + rule("*"), rule("*")},
             {rule("a"), rule("b"), rule("a")},
             {rule("a*") + until + rule("a*") + rule("b") + until + rule("b")},
             {rule("a") + host + rule("*", "host.workqueue")}})
        EXPECT_THAT(warnings_of(fine), IsEmpty()) << fine[0];
}

}  // namespace
}  // namespace wq
