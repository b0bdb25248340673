// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/rule_warnings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "policy_texts.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> warnings_of(const std::vector<std::string>& texts) {
    PolicyErrors warnings;
    EXPECT_TRUE(test::load_texts(texts, {}, &warnings));
    std::vector<std::string> out;
    for (const PolicyError& warning : warnings) out.push_back(warning.text());
    return out;
}

std::string rule(const std::string& match, const std::string& table = "workqueue") {
    return "[[" + table + "]]\nmatch = '" + match + "'\n";
}

TEST(RuleWarnings, APatternThatNoNameMatches) {
    const std::pair<const char*, const char*> cases[] = {
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
        {"events_unbound", "it is not in sysfs (the kernel's shared workqueue); only @default reaches it"},
        {"btrfs-endio", "(btrfs); only @default"},
        {"btrfs*", "(btrfs); only @default"},
        {"nfsiod", "(NFS); only @default"},
        {"rpc*", "(NFS); only @default"},
        {"loop?", "(loop devices); only @default"},
    };
    for (const auto& [pattern, why] : cases)
        EXPECT_THAT(warnings_of({rule(pattern)}), ElementsAre(HasSubstr(why))) << pattern;
    for (const char* fine : {"*", "kcryptd-*", "kcryptd-[0-9]*", "[]x]", "[[:alpha:]]*", "nvme!wq", "\\[",
                             "{ab}", "n*", "dm.", "gve-0000:01:00.*", "(a)", "nf_ft_offload_*"})
        EXPECT_THAT(warnings_of({rule(fine)}), testing::IsEmpty()) << fine;
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
    EXPECT_THAT(warnings_of({host + rule("^a", "host.workqueue") + rule("*", "host.workqueue") +
                             rule("b", "host.workqueue")}),
                ElementsAre(HasSubstr("0.toml:5:9: \"^a\" matches no workqueue"),
                            HasSubstr("0.toml:9:9: \"b\" never applies")));
    for (const std::vector<std::string>& fine : std::vector<std::vector<std::string>>{
             {rule("a") + rule("a*") + rule("b*") + rule("*")},
             {rule("a") + rule("*"), rule("*")},
             {rule("a"), rule("b"), rule("a")},
             {rule("a*") + until + rule("a*") + rule("b") + until + rule("b")},
             {rule("a") + host + rule("*", "host.workqueue")}})
        EXPECT_THAT(warnings_of(fine), testing::IsEmpty()) << fine[0];
}

}  // namespace
}  // namespace wq
