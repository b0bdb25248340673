// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Documents that TOML 1.0 allows, those on which toml11 3.7 and 4 differ, and many that TOML forbids,
// generated from tables. None may crash the parser, be accepted, or give an error without a place. If a table
// does not tell the line of the error, as for a missing bracket, more than one line is right.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <sstream>

#include "policy/settings.h"
#include "policy/toml.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::repeated;
using testing::SizeIs;

using Texts = std::vector<std::string>;

constexpr unsigned kAny = 0;
constexpr double kBearable = 10;  // s of CPU time, under a sanitizer

struct Document {
    std::string text;
    unsigned line = kAny;  // of its error
};

Texts words(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

// The documents of TEXT, with ";;" between them and "|" for the end of a line.
Texts documents_of(std::string text) {
    std::ranges::replace(text, '|', '\n');
    Texts out;
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 4) {
        end = text.find(" ;; ", at);
        out.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    }
    return out;
}

// Replaces the '@' in TEXT by WORD.
std::string fill(std::string text, const std::string& word) {
    return text.replace(text.find('@'), 1, word);
}

bool is_valid(const std::string& text) {
    return TomlFile{"policy.toml", text}.parse().has_value();
}

// Writes each text to the same file and loads it.
class PolicyDocuments : public testing::Test {
  protected:
    // Loads TEXT. The result must be a policy, or errors with places, in bounded time.
    tl::expected<Policy, PolicyErrors> load(const std::string& text) {
        tree_.write("policy.toml", text);
        const std::clock_t start = std::clock();
        auto policy = load_policy({tree_.path("policy.toml")});
        EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kBearable)
            << text.substr(0, 200);
        if (!policy) expect_places(policy.error(), text);
        return policy;
    }

    // Expects at least one error; each must have this file and a place inside it.
    void expect_places(const PolicyErrors& errors, const std::string& text) {
        EXPECT_FALSE(errors.empty()) << text;
        const TomlFile source{"", text};
        for (const PolicyError& error : errors) {
            const std::string shown = error.text() + "\n" + text.substr(0, 1000);
            EXPECT_EQ(error.file, tree_.path("policy.toml"));
            EXPECT_NE(error.message, "");
            if (error.message == "larger than 1 MiB") continue;
            EXPECT_GE(error.line, 1U) << shown;
            EXPECT_LE(error.line, std::ranges::count(text, '\n') + 1) << shown;
            EXPECT_GE(error.column, 1U) << shown;
            EXPECT_LE(error.column, source.line(error.line).size() + 1) << shown;
        }
    }

    // Expects exactly one error with a place: the document is not TOML.
    void expect_refused(const Document& document) {
        const std::string shown = document.text.substr(0, 200);
        EXPECT_FALSE(is_valid(document.text)) << shown;
        const auto policy = load(document.text);
        ASSERT_FALSE(policy) << shown;
        ASSERT_THAT(policy.error(), SizeIs(1)) << shown;
        const PolicyError& error = policy.error()[0];
        EXPECT_EQ(error.line, document.line == kAny ? error.line : document.line) << error.text() << "\n"
                                                                                  << shown;
    }

    // Puts each of WORDS in place of the '@' of each of PLACES. The error must be on the line of the '@', if
    // EXACT and the word has only one line.
    void expect_each_refused(const Texts& words, const Texts& places, bool exact = true) {
        for (const std::string& word : words)
            for (const std::string& place : places) {
                const auto line = std::count(place.begin(), place.begin() + place.find('@'), '\n') + 1;
                const bool known = exact && word.find('\n') == std::string::npos;
                expect_refused({fill(place, word), known ? static_cast<unsigned>(line) : kAny});
            }
    }

    test::TempTree tree_;
};

// Places of a value: top level, table, array, inline table, rule, inline table in an array.
const Texts kValues = {"x = @\n",
                       "# c\n[shard]\nsize = 8\nx = @\nsize2 = 1\n",
                       "x = [\n  1,\n  @\n]\n",
                       "\nx = {a = 1, b = @}\n",
                       "[[workqueue]]\nmatch = '*'\nx.y.z = @\n",
                       "x = [{a = @}, 1]\n"};
// Places of a key: top level, table, inline table, both kinds of headers, after a dot.
const Texts kKeys = {
    "@ = 1\n",   "size = 1\n[shard]\n@ = 1\nb = 2\n", "\nx = {a2 = 1, @ = 1}\n", "[@]\n", "a1 = 1\n[[@]]\n",
    "b1.@ = 1\n"};
const Texts kLines = {"@\n", "@", "# c\n[shard]\nsize = 8\n@\n", "[shard]\n@\n[daemon]\n"};
const Texts kStrings = {"x = \"a@b\"\n",       "\nx = 'a@b'\n",        "x = \"\"\"\na@b\"\"\"\n",
                        "x = '''\n\na@b'''\n", "a = 1 # a@b\n",        "# a@b",
                        "'a@b' = 1\n",         "[shard]\n[\"a@b\"]\n", "x = [{y = 'a@b'}]\n"};

// ---- what TOML allows

// What the guard before the library has to read right: strings, comments, brackets, dots, long numbers, the
// beginning and the ends of lines. (toml11's own tests have the values and keys that TOML allows.)
TEST_F(PolicyDocuments, WhatIsAllowedIsTaken) {
    const Texts texts = {"x = 0b" + std::string(62, '1'),
                         "x = 1979-05-27T00:32:00.999999-07:00",
                         "x = ''\ny = \"\"\nz = ''''''",
                         "x = \"\"\"\"a\"\"\"\"",
                         "x = '''''a'''''",
                         R"(x = "\b\t\n\f\r\"\\\u00E9\U0001F600\u0001")",
                         R"(x = 'C:\path\new')",
                         "x = \"é 漢 😀 \ufeff \u2028\" # é 漢 😀 \ufeff",
                         "x = '''\r\na\r\n'''",
                         "x = [ # [\n  '#', \"]\", # ]\n]",
                         "x = [''']''', '[']",
                         "x = {a = [1,\n2]}",
                         "x = " + repeated("[", 15) + "1" + repeated("]", 15),
                         "x = " + repeated("{a = ", 15) + "1" + repeated("}", 15),
                         "x = [" + repeated("1, ", 1300) + "]",
                         "a . b = 1\na\t.\tc\t=\t1",
                         repeated("a.", 128) + "a = 1",
                         "[[a]]\n[a.b]\n[[a]]\n[a.b]",
                         "",
                         "\n\n",
                         " \t",
                         "#",
                         "\r\n# c\r\n[a]\r\n",
                         "\ufeff",
                         "\ufeffa = 1",
                         "#" + std::string(4000, 'x')};
    for (const std::string& text : texts)
        for (const char* end : {"", "\n", "\r\n", "\nz9 = 1\n", " # c"})
            EXPECT_TRUE(is_valid(text + end)) << text.substr(0, 200);
}

TEST_F(PolicyDocuments, KnownToBeRefusedThoughToml) {
    for (const std::string& text :
         {"x = " + repeated("[", 17) + "1" + repeated("]", 17), repeated("a.", 129) + "a = 1",
          "#" + std::string(4096, 'x'), "x = 0b" + std::string(63, '1'),
          std::string("[[workqueue]]\nmatch = \"a\\u0000*\"")})
        EXPECT_FALSE(load(text)) << text;
}

constexpr bool kNew = TOML11_VERSION_MAJOR >= 4;

// Where the versions of toml11 differ from each other, and so one of them from TOML. The manual names the
// kinds. No key of a policy accepts any of these numbers and dates.
TEST_F(PolicyDocuments, KnownToDependOnTheVersion) {
    // Version 3.7 takes the largest number in place of one beyond 64 bits, infinity in place of a number too
    // large, and a table below an array in brackets. Version 4 takes any time zone.
    const Texts numbers = {
        "9223372036854775808",     "-9223372036854775809", "0x8000000000000000", "1e400", "-1e400",
        "0o1000000000000000000000"};
    const Texts zones = {"1979-05-27T07:32:00+00:60", "1979-05-27T07:32:00-24:00"};
    const Texts tables = {"a = [{b = 1}]\n[a.c]", "a = [{b = 1}]\n[[a.c]]", "[a]\nb = [{c = 1}]\n[a.b.d]",
                          "host = [{name = 'h'}]\n[host.judge]"};
    for (const std::string& number : numbers) EXPECT_EQ(is_valid("x = " + number), !kNew) << number;
    for (const std::string& zone : zones) EXPECT_EQ(is_valid("x = " + zone), kNew) << zone;
    for (const std::string& text : tables) EXPECT_EQ(is_valid(text), !kNew) << text;
    // Version 3.7 wants a table before its sub-tables that are lists.
    for (const char* text :
         {"[[a.b]]\n[a]\nc = 1", "[[judge.counters]]\ncounter = 'latency'\n[judge]\nalpha = 0.1"})
        EXPECT_EQ(is_valid(text), kNew) << text;
    for (const Texts& values : {numbers, zones})
        for (const std::string& value : values)
            for (const auto& setting : settings())
                EXPECT_FALSE(load(fmt::format("[{}]\n{} = {}\n", setting.table, setting.key, value)))
                    << setting.key << value;
}

// ---- what TOML does not allow: a few of each kind in each place (toml11's own tests have them all)

TEST_F(PolicyDocuments, WhatIsNoTomlIsOneErrorWithItsLine) {
    expect_each_refused(words("01 0x 0xg 1__0 1. 1e nanx True yes abc é @ \\ 1979-02-29 1979-05-27T24:00:00 "
                              "1979-05-27T07:32:00+25:00 7:32:00"),
                        kValues);
    expect_each_refused({"1 2", R"("\x41")", R"("\uD800")", R"("a" "b")", "\"abc", "'abc", "'a\nb'", "[1 2]",
                         "[1,,2]", "[1}", "{a}", "{a = 1 b = 2}", "{a = 1, a.b = 2}", "{a = 1\n}"},
                        kValues);
    // The end is found missing only at the end of the text.
    expect_each_refused({"'''abc", "\"\"\"abc\\\"\"\"", "[1", "[1, # ]", "['a', ']'", "]", "{a = 1", "}"},
                        kValues, false);
    expect_each_refused(words("é a!b a..b .a 'a'b a#b \"a\\x\""), kKeys);
    expect_each_refused(
        documents_of("[] ;; [a ;; [a..b] ;; [a] x ;; [[a] ;; [a|] ;; a = 1 b = 2 ;; a ;; a = ;; = 1"),
        kLines);
    expect_each_refused({"e=[[b]{[="}, kLines, false);  // version 4 looks for more, and never ends
}

TEST_F(PolicyDocuments, NamesThatAreThereAlready) {
    const std::map<unsigned, const char*> documents = {
        // by the line of the error
        {kAny, "[a.b]|[a]|b = 1 ;; [[a.b]]|[a]|b.y = 2 ;; a = []|[a.b]"},
        {2,
         "a = 1|a = 2 ;; a = 1|\"\\u0061\" = 2 ;; a.b = 1|a = 2 ;; a = 1|a.b = 2 ;; a = {b = 1}|a.c = 2 ;; "
         "a = [1]|a.b = 1 ;; [a]|[a] ;; a = 1|[a.b] ;; [a]|[[a]] ;; [[a]]|[a] ;; a = [{b = 1}]|[[a]] ;; "
         "shard.size = 8|[shard]"},
        {3, "[a]|b = 1|b = 1 ;; [a]|b = 1|[a.b] ;; [[a]]|[[a.b]]|[a.b]"},
        {4, "a = '''|x|'''|a = 1 ;; a = [|1,|2]|a = 1"},
    };
    for (const auto& [line, texts] : documents)
        for (const std::string& text : documents_of(texts))
            for (const char* end : {"", "\n", "\r\n", "\nz = 1\n"}) expect_refused({text + end, line});
}

// ---- bytes

TEST_F(PolicyDocuments, ControlCharacters) {
    Texts bytes = {"\x7f", "\r", "\r\r\n", std::string("\0", 1)};
    for (char byte = 1; byte < 0x20; ++byte)
        if (byte != '\t' && byte != '\n' && byte != '\r') bytes.push_back(std::string(1, byte));
    expect_each_refused(bytes, kStrings);
    expect_each_refused(
        bytes, {"a@= 1\n", "\na =@1\n", "[shard]\n@size = 8\n", "@", "a = 1@", "[a@]\n", "x = [1,@2]\n"});
}

TEST_F(PolicyDocuments, BytesThatAreNotUtf8) {
    const Texts bytes = {
        "\x80",         "\xc0\x80",         "\xc3",        "\xe2\x82",         "\xe0\x80\x80",
        "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf0\x9f",    "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xff\xfe",         "\xf0\x9f\x98"};
    expect_each_refused(bytes, kStrings);
    expect_each_refused(bytes, {"a@= 1\n", "\na =@1\n", "[shard]\n@", "@"});
}

TEST_F(PolicyDocuments, CharactersThatAreNoBlanksAndNoNewlines) {
    // A byte order mark that is not at the beginning; unusual blanks and newlines.
    for (const char* odd : {"\ufeff", "\u00a0", "\u0085", "\u2028", "\u3000", "\u200b"})
        for (const char* place :
             {"a@= 1\n", "\na =@1\n", "[shard]\n@size = 8\n", "a = 1@\n", "[a@]\n", "a = [1,@2]\n"})
            expect_each_refused({odd}, {place});
    expect_refused({"\ufeff\ufeffa = 1\n", 1});
    expect_refused({"a = 1\n\ufeff", 2});
    expect_refused({"a = 1\rb = 2\rc = 3\r", 1});  // line ends of the classic Mac OS
}

// ---- sizes

TEST_F(PolicyDocuments, LongLinesAndLargeFiles) {
    for (const std::size_t size : {5'000U, 1'000'000U}) {
        const std::string x(size, 'x');
        for (const std::string& line :
             {"#" + x, "a = \"" + x + "\"", x + " = 1", "[" + x + "]", "a = " + std::string(size, '1'),
              "a = [" + repeated("1, ", size / 3) + "]", std::string(size, ' '),
              "a = 0b" + std::string(size, '1'), "a = '''" + x})
            for (const char* before : {"", "[shard]\n\n"})
                expect_refused({before + line + "\nsize = 8\n", *before == '\0' ? 1U : 3U});
    }
    for (const std::string& text : {repeated("x", 10'000'000), repeated("# a comment\n", 1'000'000)}) {
        const auto policy = load(text);
        ASSERT_FALSE(policy);
        EXPECT_THAT(policy.error(), SizeIs(1));
        EXPECT_EQ(policy.error()[0].text(), tree_.path("policy.toml") + ": larger than 1 MiB");
    }
}

TEST_F(PolicyDocuments, DeepNesting) {
    for (const unsigned depth : {129U, 1'000U, 10'000U, 100'000U}) {
        for (const std::string& line :
             {repeated("[", depth), repeated("[", depth) + "1" + repeated("]", depth), repeated("{a=", depth),
              repeated("{a=", depth) + "1" + repeated("}", depth), repeated("[{a=", depth),
              repeated("a.", depth) + "a = 1", repeated("a . ", depth) + "a = 1",
              "{" + repeated("a.", depth) + "a = 1}"}) {
            expect_refused({"\nx = " + line + "\n", 2});
            expect_refused({"[shard]\nsize = 8\nx." + line + "\n", 3});
        }
        expect_refused({"[" + repeated("a.", depth) + "a]\n", 1});
        expect_refused({"\n[[" + repeated("a.", depth) + "a]]\n", 2});
        expect_refused({"x = " + repeated("[\n", depth), 17});
    }
}

// The deepest tree that is allowed. Each inline table begins on a new line, after a string of two lines. The
// stack must be large enough to build the tree and to destroy it.
TEST_F(PolicyDocuments, DeepestTree) {
    const std::string key = repeated("a.", 128) + "a";
    const std::string deepest = "[" + key + "]\n" + key + " = " +
                                repeated("{x = '''\n''', " + key + " = ", 15) + "1" + repeated("}", 15) +
                                "\n";
    EXPECT_TRUE(is_valid(deepest));
    expect_refused({deepest + "=", 18});
}

TEST_F(PolicyDocuments, ManyElementsAndManyMistakes) {
    const auto first = [&](const std::string& text) {
        const auto policy = load(text);
        return policy ? "no error" : policy.error()[0].message;
    };
    EXPECT_EQ(first("judge.counters = [\n" + repeated("7,\n", 30'000) + "]\n"),
              "counters must have 1 to 8 elements, not 30000");
    EXPECT_EQ(first("workqueue = [\n" + repeated("7,\n", 30'000) + "]\n"),
              "workqueue must have 0 to 1024 elements, not 30000");
    const auto policy = load(repeated("[[workqueue]]\nmatch = 1\nscope = 2\n", 1000));
    ASSERT_FALSE(policy);
    EXPECT_THAT(policy.error(), SizeIs(1000)) << "mistakes of all kinds are counted";
}

// ---- documents that are almost valid

const char* const kGood = R"(# é
daemon.mode = "tun\u0065" # c
shard = {size = 0x8}
judge.counters = ["latency", {counter = 'file:/x', higher = "worse"},
]
judge.window = """
1\
   0s"""
[default_scope]
scope = 'smt'
manage = true
[[workqueue]]
match = '''a*'''
[[host]]
name = "h"
when = {cores = ">=2", canary = "5%", virtual = false}
judge = {alpha = 1e-2}
[[host.workqueue]]
match = "b"
)";

TEST_F(PolicyDocuments, CutAnywhere) {
    const std::string good = kGood;
    ASSERT_TRUE(load(good)) << load(good).error()[0].text();
    for (std::size_t at = 0; at <= good.size(); ++at) load(good.substr(0, at));
    for (std::size_t at = 0; at < good.size(); ++at) load(good.substr(at));
    for (std::size_t at = 0; at < good.size(); ++at) load(std::string(good).erase(at, 1));
}

TEST_F(PolicyDocuments, WithAWordTooManyAnywhere) {
    const std::string good = kGood;
    for (const char* word :
         {"\"", "'''", "[", "]", "{", "}", "=", ",", ".", "\\", "#", "\n", "0", "1979-05-27T24:00:00"})
        for (std::size_t at = 0; at <= good.size(); at += 2) load(std::string(good).insert(at, word));
}

}  // namespace
}  // namespace wq
