// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/text.h"
#include "policy/load_policy.h"
#include "policy/rule_warnings.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::File;
using test::repeated;
using test::TempTree;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

PolicyErrors errors_of(const std::string& text) {
    const TempTree tree{File("policy.toml", text)};
    const auto policy = load_policy({tree.path("policy.toml")});
    PolicyErrors errors = policy ? PolicyErrors{} : policy.error();
    for (PolicyError& error : errors) error.file.erase(0, tree.root().size() + 1);
    return errors;
}

std::vector<std::string> mistakes_in(const std::string& text) {
    std::vector<std::string> out;
    for (const PolicyError& error : errors_of(text)) out.push_back(error.text());
    return out;
}

struct WrongText {
    std::string text;
    std::string error;  // how the one error begins
};

void expect_one_error_in(const WrongText& wrong) {
    EXPECT_THAT(mistakes_in(wrong.text), ElementsAre(StartsWith("policy.toml:" + wrong.error)))
        << wrong.text.substr(0, 100);
}

TEST(PolicyError, EachKindHasItsPlaceAndSaysWhatIsAllowed) {
    const std::string textfile =
        "textfile must be an absolute path that ends in \".prom\", or empty for none";
    const std::string scopes =
        R"("auto", "plan", "leave", "cpu", "smt", "cache_shard", "cache", "numa", "system")";
    const std::string rule = "[[workqueue]]\nmatch = \"*\"\n";
    const std::string hold = "hold is only for scope = \"plan\" or a scope's name, which are set first, not ";
    const std::string candidates = "candidates is only for scope = \"auto\", not ";
    const std::string expires = "expires must be a day without a time, such as 2027-01-31, not ";
    const std::vector<WrongText> cases = {
        // Wrong types.
        {"[shard]\nsize = \"8\"\n", "2:8: size must be a whole number from 1 to 1024, not the string \"8\""},
        {"[shard]\n  size=3.5\n",
         "2:8: size must be a whole number from 1 to 1024, not the floating-point number 3.5"},
        {"[shard]\nsize = true\n", "2:8: size must be a whole number from 1 to 1024, not true"},
        {"[shard]\nsize = [8]\n", "2:8: size must be a whole number from 1 to 1024, not an array"},
        {"[shard]\nsize = {}\n", "2:8: size must be a whole number from 1 to 1024, not a table"},
        {"[shard]\nsize = 1979-05-27\n",
         "2:8: size must be a whole number from 1 to 1024, not the date 1979-05-27"},
        {"[daemon]\nmode = 3\n", R"(2:8: mode must be one of "observe", "tune", not 3)"},
        {"[default_scope]\nmanage = \"no\"\n", "2:10: manage must be true or false, not the string \"no\""},
        {"[[workqueue]]\nmatch = 7\n", "2:9: match must be a string that is not empty, not 7"},
        {"[[workqueue]]\nmatch = \"*\"\nstrict = \"yes\"\n", "3:10: strict must be true or false"},
        {"shard = 8\n", "1:9: shard must be one table, [shard], not 8"},
        {"[[shard]]\nsize = 8\n", "1:1: shard must be one table, [shard], not an array"},
        {"[workqueue]\nmatch = \"*\"\n",
         "1:1: workqueue must be a list of tables, each below its own [[workqueue]]"},
        {"workqueue = [3]\n", "1:14: workqueue must be a list of tables"},
        // Out of range.
        {"[shard]\nsize = -1\n", "2:8: size must be a whole number from 1 to 1024, not -1"},
        {"[shard]\nsize = 0\n", "2:8: size must be a whole number from 1 to 1024, not 0"},
        {"[shard]\nsize = 1025\n", "2:8: size must be a whole number from 1 to 1024, not 1025"},
        {"[daemon]\non_exit = \"stay\"\n",
         R"(2:11: on_exit must be one of "restore", "keep", not the string "stay")"},
        {"[daemon]\nmode = \"Tune\"\n",
         R"(2:8: mode must be one of "observe", "tune", not the string "Tune"; did you mean "tune"?)"},
        {"[[workqueue]]\nmatch = \"*\"\nscope = \"default\"\n",
         "3:9: scope must be one of " + scopes + ", not the string \"default\""},
        {"[[workqueue]]\nmatch = \"*\"\nscope = \"cache-shard\"\n",
         "3:9: scope must be one of " + scopes +
             ", not the string \"cache-shard\"; did you mean \"cache_shard\"?"},
        {"[default_scope]\nscope = \"SMT\"\n",
         "2:9: scope must be one of " + scopes + ", not the string \"SMT\"; did you mean \"smt\"?"},
        {"[[workqueue]]\nmatch = \"\"\n", "2:9: match must be a string that is not empty"},
        {"[[workqueue]]\nmatch = \"" + std::string(256, 'x') + "\"\n", "2:9: match is longer than 255 bytes"},
        {"\n[[workqueue]]\nscope = \"smt\"\n", "2:1: a rule needs a match"},
        // What a rule's scope says.
        {"[[workqueue]]\nmatch = [\"a\",\n \"\"]\n",
         "3:2: an element of match must be a string that is not empty"},
        {"[[workqueue]]\nmatch = [\"a\", 7]\n",
         "2:15: an element of match must be a string that is not empty, not 7"},
        {"[[workqueue]]\nmatch = [\"a\", {}]\n", "2:15: an element of match must be a string"},
        {"[[workqueue]]\nmatch = [\"a\", \"" + std::string(256, 'x') + "\"]\n",
         "2:15: match is longer than 255 bytes"},
        {"[[workqueue]]\nmatch = []\n", "2:9: match must have an element"},
        {"[[workqueue]]\nmatch = [" + repeated("'a',", 65) + "]\n", "2:9: match has more than 64 elements"},
        {rule + "hold = true\n", "3:8: " + hold + "\"auto\""},
        {rule + "scope = \"leave\"\nhold = true\n", "4:8: " + hold + "\"leave\""},
        {rule + "hold = 1\n", "3:8: hold must be true or false"},
        {rule + "scope = \"plan\"\ncandidates = [\"smt\"]\n", "4:14: " + candidates + "\"plan\""},
        {rule + "candidates = [\"smt\"]\nscope = \"smt\"\n", "3:14: " + candidates + "\"smt\""},
        {"[default_scope]\nscope = \"leave\"\ncandidates = [\"smt\"]\n", "3:14: " + candidates + "\"leave\""},
        {rule + "candidates = []\n", "3:14: candidates must have an element"},
        {rule + "candidates = [\"smt\", \"auto\"]\n",
         R"(3:22: a candidate must be one of "cpu", "smt", "cache_shard", "cache", "numa", "system", not "auto")"},
        {rule + "candidates = [\"smt\", \"cpu\", \"smt\"]\n", "3:29: the candidate \"smt\" is listed twice"},
        {rule + "expires = 2027-01-31T00:00:00+01:00\n", "3:11: " + expires + "a date with a time"},
        {rule + "expires = 12:00:00\n", "3:11: " + expires + "a time"},
        {"[default_scope]\nexpires = 31\n", "2:11: " + expires + "31"},
        {repeated("[[workqueue]]\nmatch = \"*\"\n", 1025), "2049:1: more than 1024 rules"},
        // Unknown keys: the place is that of the value.
        {"[shard]\nsiez = 8\n", "2:8: unknown key \"siez\" in [shard]; did you mean \"size\"?"},
        {"[shard]\n\t\"si ze\"  =  8\n", "2:14: unknown key \"si ze\" in [shard]; did you mean \"size\"?"},
        {"[shard]\nsize = 8\ncolour = 'red'\n", "3:10: unknown key \"colour\" in [shard]; known keys: size"},
        {"shard.size = 8\nshard.a.b = 8\n", "2:1: unknown key \"a\" in [shard]"},
        {"shard = {size = 8, é.b = 1}\n", "1:20: "},
        {"shard = {size = 8, 'é' = 1}\n", "1:27: unknown key \"é\" in [shard]"},
        {"shard = {size = 8, \"\" = 1}\n", "1:25: unknown key \"\" in [shard]"},
        {"mode = \"tune\"\n", "1:8: unknown key \"mode\"; it belongs in [daemon]"},
        {"colour = \"red\"\n",
         "1:10: unknown key \"colour\"; known keys: daemon, default_mask, default_scope, host, judge, "
         "metrics, shard, workqueue"},
        {"[daemon]\n[work]\n", "2:1: unknown key \"work\"; known keys: "},
        {"[daemons]\nmode = 3\n", "1:1: unknown key \"daemons\"; did you mean \"daemon\"?"},
        {"[[workqueue]]\nmatch = \"*\"\n[workqueue.host]\n",
         "3:1: unknown key \"host\" in [[workqueue]]; it belongs at "
         "the top level"},
        {"[[workqueue]]\nmatch = \"*\"\nsize = 8\n",
         "3:8: unknown key \"size\" in [[workqueue]]; it belongs in "
         "[shard]"},
        {"scope = \"smt\"\n",
         "1:9: unknown key \"scope\"; it belongs in [default_scope] or in [[workqueue]]"},
        {"[[host]]\nname = \"a\"\narch = \"x86_64\"\n",
         "3:8: unknown key \"arch\" in [[host]]; it belongs in "
         "when of [[host]]"},
        {"metrics = 1\n", "1:11: metrics must be one table, [metrics], not 1"},
        {"[metrics]\ntextfiel = \"\"\n",
         "2:12: unknown key \"textfiel\" in [metrics]; did you mean \"textfile\"?"},
        {"[metrics]\ntextfile = true\n", "2:12: textfile must be a string, not true"},
        {"[metrics]\ntextfile = 5\n", "2:12: " + textfile + ", not 5"},
        {"[metrics]\ntextfile = \"a.prom\"\n", "2:12: " + textfile + ", not the string \"a.prom\""},
        {"[metrics]\ntextfile = \"/a/b.txt\"\n", "2:12: " + textfile + ", not the string \"/a/b.txt\""},
        {"[metrics]\ntextfile = \"/a.prom/\"\n", "2:12: " + textfile + ", not the string \"/a.prom/\""},
        {"[metrics]\ntextfile = \"/a/.prom\"\n", "2:12: " + textfile + ", not the string \"/a/.prom\""},
    };
    for (const WrongText& wrong : cases) expect_one_error_in(wrong);
}

// What is found before the library gets the text, and words without quotes.
TEST(PolicyError, WhatTheLibraryMustNotGetHasItsPlace) {
    const std::string straight = "put it in straight quotes: \"tune\"";
    const std::vector<WrongText> cases = {
        {"[[workqueue]]\nmatch = \"a\\u0000*\"\n", "2:9: match has a NUL character"},
        {std::string("[shard]\nsi\0ze = 8\n", 18), "2:3: control character 0x00"},
        {"# \x1b[2J\n", "1:3: control character 0x1b"},
        {"a = 1\r b = 2\n", "1:6: control character 0x0d"},
        {"a = 1\r", "1:6: control character 0x0d"},
        {"x = \"\x7f\"\n", "1:6: control character 0x7f"},
        {"x = 1 # \xff\n", "1:9: not UTF-8: byte 0xff"},
        {"x = \"\xed\xa0\x80\"\n", "1:6: not UTF-8"},
        {"x = \"\xe2\x82", "1:6: not UTF-8"},
        {"#" + std::string(5000, 'x') + "\n", "1:4097: line longer than 4096 bytes"},
        {"a = " + std::string(4000, '['), "1:21: values nested deeper than 16 levels"},
        {"a = " + repeated("[\n", 100000), "17:1: values nested deeper than 16 levels"},
        {"a = " + repeated("{a=", 1000), "1:53: values nested deeper than 16 levels"},
        {"a = [\"\\\"[\", '''\n[''', '[', # [\n" + repeated("[", 17), "3:16: values nested deeper"},
        {repeated("a.", 1000) + "a = 1\n", "1:258: more than 128 dots in a line"},
        {"[shard]\nsize = 0b1" + std::string(73, '0') + "1000\n", "2:8: a binary number of more than 64"},
        {"[judge]\ncounters = [ # none\n\n]\n", "2:12: counters must have an element, or be left out"},
        {"[daemon]\nmode = tune # all\n", "2:8: put it in quotes: \"tune\""},
        {"scope = cache_shard", "1:9: put it in quotes: \"cache_shard\""},
        {"match = kcryptd-*\n", "1:9: put it in quotes: \"kcryptd-*\""},
        {"a = [\"b\", smt]\n", "1:11: put it in quotes: \"smt\""},
        {"a = {b = leave}\n", "1:10: put it in quotes: \"leave\""},
        {"budget = 60s\n", "1:10: put it in quotes: \"60s\""},
        {"tolerance = 5%\n", "1:13: put it in quotes: \"5%\""},
        {"mode = “tune”\n", "1:8: " + straight},
        {"mode = „tune“\n", "1:8: " + straight},
        {"mode = \"tune”\n", "1:8: " + straight},
    };
    for (const WrongText& wrong : cases) expect_one_error_in(wrong);
}

// The library's own report in one line. Each version has its own column and words.
TEST(PolicyError, WrongSyntaxIsOneErrorWithItsLine) {
    const std::vector<std::pair<std::string, unsigned>> cases = {
        {"a = 1\nb = 2\na = 3\n", 3},
        {"a = 1\na.b = 2\n", 2},
        {"a = {b = 1}\n\na.c = 2\n", 3},
        {"a = []\n\n[a.b]\n", 3},
        {"[shard]\nsize = 8\n[daemon]\n[shard]\n", 4},
        {"[[workqueue]]\n[workqueue]\n", 2},
        {"[workqueue]\n[[workqueue]]\n", 2},
        {"host={}\n[host.shard]\n[shard]\n", 2},
        {"[a]\nb = 1\n[a.b]\n", 3},
        {"\na = 1979-13-01\n", 2},
        {"a = 25:00:00\n", 1},
        {"b = 1\na = 1979-05-27T07:32:61\n", 2},
        {"\n\n[a\nb = 1\n", 3},
        {"[shard]\n]\n", 2},
        {"[a] b = 1\n", 1},
        {"a = [1, 2\nb = 3\n", 2},
        {"a = {b = 1,}\n", 1},
        {"\na = 3 4\n", 2},
        {"\na b = 4\n", 2},
        {"\na = \nb = 1\n", 2},
        {"\na = 01\n", 2},
        {"a = \"abc\nb = 1\n", 1},
        {"[shard]\nx = \"C:\\path\"\n", 2},
        {"x = \"\\uD800\"\n", 1},
        {"e=[[=]]\n", 1},
        {"\xef\xbb\xbfx = 1\nx = [}\n", 2},
    };
    for (const auto& [text, line] : cases) {
        const auto errors = errors_of(text);
        ASSERT_THAT(errors, SizeIs(1)) << text;
        EXPECT_THAT(errors[0].message, StartsWith("syntax error: ")) << text;
        EXPECT_EQ(errors[0].line, line) << errors[0].underlined();
    }
    EXPECT_THAT(mistakes_in("e=[[b]{[=\n"), SizeIs(1)) << "version 4 looks for more, and never ends";
}

TEST(PolicyError, AllMistakesOfAllFilesAreToldInOrder) {
    const TempTree tree{File("a.toml", "[shard]\nsize = 0\n[daemon]\nmode = 1\nx = 2\n[host]\n"),
                        File("b.toml", "[shard\n"), File("c.toml", "[shard]\nsize = 1\n"),
                        File("d.toml", "[[workqueue]]\nscope = 1\n")};
    const auto policy = load_policy({tree.path("a.toml"), tree.path("b.toml"), tree.path("c.toml"),
                                     tree.path("gone.toml"), tree.path("d.toml")});
    ASSERT_FALSE(policy);
    std::vector<std::string> places;
    for (const PolicyError& error : policy.error())
        places.push_back(error.file.substr(tree.root().size() + 1) + ":" + std::to_string(error.line));
    EXPECT_THAT(places, ElementsAre("a.toml:2", "a.toml:4", "a.toml:5", "a.toml:6", "b.toml:1", "gone.toml:0",
                                    "d.toml:1", "d.toml:2"));
}

TEST(PolicyError, IsUnderlined) {
    const auto errors = errors_of("[shard]\n\t'é' = 1\n\tsize = -1 # é\n");
    ASSERT_THAT(errors, SizeIs(2));
    EXPECT_THAT(errors[0].underlined(), testing::EndsWith("\n    2 | \t'é' = 1\n      | \t      ^"));
    EXPECT_THAT(errors[1].underlined(), testing::EndsWith("\n    3 | \tsize = -1 # é\n      | \t       ^"));
    EXPECT_EQ((PolicyError{"x.toml", 0, 0, "gone", "", 0}).underlined(), "x.toml: gone");
}

// The excerpt is a part of the line, cut between characters; the caret is still under its column.
TEST(PolicyError, ALongLineIsCutAroundThePlace) {
    for (std::size_t length : {10U, 49U, 50U, 51U, 90U, 100U, 101U, 150U, 1000U, 1900U})
        for (const char* tail :
             {"", " # the end", " # and some more words than fit into what is shown of a long line"}) {
            const auto errors =
                errors_of("shard = {size = 8, '" + repeated("é", length) + "' = 1, x = 'X'}" + tail);
            ASSERT_THAT(errors, SizeIs(2));
            EXPECT_EQ(errors[1].excerpt.substr(errors[1].caret - 1, 3), "'X'") << errors[1].underlined();
            EXPECT_LE(errors[1].excerpt.size(), 100U);
            EXPECT_EQ(printable(errors[1].excerpt), errors[1].excerpt) << "cut within a character";
        }
}

TEST(PolicyError, NothingReachesATerminalThatItWouldObey) {
    const std::string clear = "\x1b[2J";
    EXPECT_EQ(printable(clear + "é\t\xc2\x9b" + "\xff\n"), "?[2Jé\t????");
    for (const std::string& text :
         {"x = \"" + clear + "\"\n", std::string("\"\\u001b[2J\" = 1\n"),
          std::string("daemon.mode = \"\\u001b\\u009b\"\n"), std::string("x = 1\xc2\x9b"),
          std::string("\xc2\x9b"),
          "a = 1\n'" + repeated("\xc2\x9b", 400) + "' = 1\n'" + repeated("\xc2\x9b", 400) + "' = 2\n"}) {
        const auto errors = errors_of(text);
        EXPECT_FALSE(errors.empty());
        for (const PolicyError& error : errors)
            EXPECT_EQ(error.underlined().find_first_of("\x1b\x9b"), std::string::npos);
    }
}

TEST(PolicyError, ALongWordIsNotRepeatedWhole) {
    const auto errors = errors_of("daemon.mode = \"" + repeated("é", 1000) + "\"\n");
    ASSERT_THAT(errors, SizeIs(1));
    EXPECT_THAT(errors[0].message, HasSubstr("the string \"" + repeated("é", 32) + "...\""));
}

TEST(PolicyError, AFileFullOfMistakesIsReadInBearableTime) {
    std::string keys;
    for (int i = 0; keys.size() < 200000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
    const auto start = std::chrono::steady_clock::now();
    const auto errors = errors_of(keys);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    ASSERT_THAT(errors, SizeIs(1001));
    EXPECT_EQ(errors[0].message, "more than 1000 mistakes; the others are not shown");
}

TEST(NearestWord, IsASlipAwayOrNothing) {
    const std::vector<std::string_view> words = {"cpu", "cache", "cache_shard", "system"};
    EXPECT_EQ(nearest_word("cpus", words), "cpu");
    EXPECT_EQ(nearest_word("sytsem", words), "system");
    EXPECT_EQ(nearest_word("cache_shrd", words), "cache_shard");
    for (const char* far : {"", "x", "default", "zzz"}) EXPECT_EQ(nearest_word(far, words), "") << far;
    EXPECT_EQ(nearest_word(std::string(100000, 'c'), words), "");
    EXPECT_EQ(nearest_word("cpu", {}), "");
}

}  // namespace
}  // namespace wq
