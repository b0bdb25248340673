// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The rules of TOML 1.0 for keys, tables, inline tables and arrays of tables: what may be defined where, and
// the result.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "policy/toml_parser.h"

namespace wq {
namespace {

std::string text_of(const TomlValue& value);

std::string text_of(const TomlMembers& members) {
    std::string out;
    for (const auto& [key, one] : members) out += (out.empty() ? "" : ",") + key + ":" + text_of(*one);
    return "{" + out + "}";
}

std::string text_of(const TomlArray& elements) {
    std::string out;
    for (const TomlValue& one : elements) out += (out.empty() ? "" : ",") + text_of(one);
    return "[" + out + "]";
}

std::string text_of(const TomlValue& value) {
    if (const auto* members = std::get_if<TomlMembers>(&value.value)) return text_of(*members);
    if (const auto* elements = std::get_if<TomlArray>(&value.value)) return text_of(*elements);
    if (const auto* number = std::get_if<std::int64_t>(&value.value)) return std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&value.value)) return "'" + *text + "'";
    return "?";
}

// Returns the tree of TEXT, or why it is not TOML.
std::string read(const std::string& text) {
    const auto tree = parse_toml(text);
    return tree ? text_of(*tree) : fmt::format("{}: {}", tree.error().offset, tree.error().message);
}

struct Allowed {
    const char* text;
    const char* means;
};

TEST(TomlDefinitions, WhatIsAllowedMeans) {
    const Allowed cases[] = {
        // A table before the table that contains it.
        {"[a.b]\nx=1\n[a]\ny=2", "{a:{b:{x:1},y:2}}"},
        {"[a.b.c]\n[a.b]\nx=1\n[a]\ny=2", "{a:{b:{c:{},x:1},y:2}}"},
        {"[[a.b]]\nx=1\n[a]\ny=2", "{a:{b:[{x:1}],y:2}}"},
        {"[[a.b]]\nx=1\n[a]\n[[a.b]]\nx=2", "{a:{b:[{x:1},{x:2}]}}"},
        {"[[a.b]]\n[[a.b]]\n[a]\ny=2\n[[a.b]]", "{a:{b:[{},{},{}],y:2}}"},
        {"[[a.b.c]]\n[a]\nx=1\n[a.b]\ny=2", "{a:{b:{c:[{}],y:2},x:1}}"},
        {"[[judge.counters]]\ncounter='latency'\n[judge]\nalpha=1",
         "{judge:{alpha:1,counters:[{counter:'latency'}]}}"},
        {"[[a]]\n[a.b.c]\nx=1\n[a.b]\ny=2\n[[a]]\n[a.b]", "{a:[{b:{c:{x:1},y:2}},{b:{}}]}"},
        // Tables with other tables between them.
        {"[a]\n[b]\n[a.c]\n[b.c]", "{a:{c:{}},b:{c:{}}}"},
        {"[[a]]\n[b]\n[[a]]\n[b.c]", "{a:[{},{}],b:{c:{}}}"},
        {"[a.b]\n[c.d]\n[a.e]\n[c]", "{a:{b:{},e:{}},c:{d:{}}}"},
        // A path leads through the last element of a list.
        {"[[a]]\n[a.b]\nx=1\n[[a]]\n[a.b]\nx=2", "{a:[{b:{x:1}},{b:{x:2}}]}"},
        {"[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]\n[[a.b]]", "{a:[{b:[{},{}]},{b:[{}]}]}"},
        {"[[a]]\n[[a.b.c]]\n[a.b.d]", "{a:[{b:{c:[{}],d:{}}}]}"},
        {"[[a]]\n[[a.b]]\n[a.b.c]\nx=1", "{a:[{b:[{c:{x:1}}]}]}"},
        // Dots in keys.
        {"a.b=1\na.c=2", "{a:{b:1,c:2}}"},
        {"a.b.c=1\na.d=2\na.b.e=3", "{a:{b:{c:1,e:3},d:2}}"},
        {"a.b=1\nx=2\na.c=3", "{a:{b:1,c:3},x:2}"},
        {"[a]\nb.c=1\n[a.d]\nb.c=2", "{a:{b:{c:1},d:{b:{c:2}}}}"},
        {"[[a]]\nb.c=1\nb.d=2\n[[a]]\nb.c=3", "{a:[{b:{c:1,d:2}},{b:{c:3}}]}"},
        {"a.'b.c'=1\na.b.c=2\n'a.b'=3", "{a:{b:{c:2},b.c:1},a.b:3}"},
        {"1.2=3", "{1:{2:3}}"},
        // A header may add a table to one that dots made.
        {"[a]\nb.c=1\n[a.b.d]\nx=1", "{a:{b:{c:1,d:{x:1}}}}"},
        {"a.b=1\n[a.c]\nx=1", "{a:{b:1,c:{x:1}}}"},
        {"a.b=1\n[[a.c]]\n[[a.c]]", "{a:{b:1,c:[{},{}]}}"},
        // Inline tables and arrays.
        {"a={b.c=1,b.d=2}", "{a:{b:{c:1,d:2}}}"},
        {"a={b={c=1},d={c=2}}", "{a:{b:{c:1},d:{c:2}}}"},
        {"a=[{b=1},{b=2}]", "{a:[{b:1},{b:2}]}"},
        {"a=[]\nb={}", "{a:[],b:{}}"},
        {"a=[[],[{}]]", "{a:[[],[{}]]}"},
        {"[a]\nb={c=1}\n[a.d]", "{a:{b:{c:1},d:{}}}"},
    };
    for (const auto& [text, means] : cases) EXPECT_EQ(read(text), means) << text;
}

// A first definition of `a`, and which definitions TOML allows after it.
struct First {
    const char* text;
    bool path;    // [a.x] after it
    bool dotted;  // a.x = 1, in the table that `a` is in
    bool header;  // [a]
    bool list;    // [[a]]
};

TEST(TomlDefinitions, EachAfterEach) {
    const First cases[] = {
        {"a = 1", false, false, false, false},          {"a = [1]", false, false, false, false},
        {"a = []", false, false, false, false},         {"a = [{b = 1}]", false, false, false, false},
        {"a = {}", false, false, false, false},         {"a = {b = 1}", false, false, false, false},
        {"a = {b.c = 1}", false, false, false, false},  {"a.b = 1", true, true, false, false},
        {"a.b.c = 1", true, true, false, false},        {"[t.a.b]", true, true, true, false},
        {"[[t.a.b]]", true, true, true, false},         {"[t.a]", true, false, false, false},
        {"[t.a]\nb = 1", true, false, false, false},    {"[[t.a]]", true, false, false, true},
        {"[[t.a]]\n[[t.a]]", true, false, false, true},
    };
    for (const First& first : cases) {
        // A key is defined below [t]. After a header, [t] is opened again for the next key.
        const std::string text = first.text;
        const bool is_header = text[0] == '[';
        const std::string start = is_header ? text + "\n" : "[t]\n" + text + "\n";
        const std::string back = is_header ? "[t]\n" : "";
        const auto is_toml = [&](const std::string& more) { return parse_toml(start + more).has_value(); };
        EXPECT_EQ(is_toml("[t.a.x]"), first.path) << text;
        EXPECT_EQ(is_toml("[[t.a.x]]"), first.path) << text;
        EXPECT_EQ(is_toml("[t.a.x.y]"), first.path) << text;
        EXPECT_EQ(is_toml(back + "a.x = 1"), first.dotted) << text;
        EXPECT_EQ(is_toml(back + "a.x.y = 1"), first.dotted) << text;
        EXPECT_EQ(is_toml("[t.a]"), first.header) << text;
        EXPECT_EQ(is_toml("[[t.a]]"), first.list) << text;
        EXPECT_FALSE(is_toml(back + "a = 1")) << text;
        EXPECT_FALSE(is_toml(back + "a = {}")) << text;
        EXPECT_TRUE(is_toml(back + "z = 1")) << text;
        if (is_header) continue;
        // The same within an inline table, to which nothing can be added from outside.
        EXPECT_EQ(parse_toml("t = {" + text + ", a.x = 1}").has_value(), first.dotted) << text;
        EXPECT_FALSE(parse_toml("t = {" + text + ", a = 1}")) << text;
        for (const char* more :
             {"[t.a]", "[t.a.x]", "[[t.a]]", "[t.x]", "t.a.x = 1", "t.x = 1", "[t]", "[[t]]"})
            EXPECT_FALSE(parse_toml("t = {" + text + "}\n" + more)) << text << " " << more;
    }
}

TEST(TomlDefinitions, WhatIsClosedStaysClosed) {
    for (const char* text : {"host=[{name='x'}]\n[host.shard]",
                             "host=[{name='x'}]\n[[host.workqueue]]",
                             "host=[{name='x'}]\n[[host]]",
                             "host=[{name='x', workqueue=[{match='a'}], workqueue.scope='smt'}]",
                             "a=[{b={}}]\n[a.b]",
                             "a=[[{}]]\n[a.b]",
                             "a={b=[{}]}\n[a.b.c]",
                             "a={b={c={}}}\n[a.b.c.d]",
                             "[[a]]\nb=[{}]\n[a.b.c]",
                             "[[a]]\nb=[{}]\n[[a.b]]",
                             "[a]\nb={c={}}\n[a.b.c]",
                             "[a]\nb={}\nb.c=1",
                             "a={b={}, b.c=1}",
                             "a={b.c={}, b.c.d=1}",
                             "a={b.c=1, b={}}",
                             "[a.b]\n[a]\nb={}",
                             "[a.b]\n[a]\nb.c=1",
                             "[a.b.c]\n[a]\nb.c.d=1",
                             "[a.b]\nc.d=1\n[a]\nb.c.e=1",
                             "[[a.b]]\n[a]\nb.c=1",
                             "[[a.b]]\n[a]\nb=1",
                             "[[a.b]]\n[a.b]",
                             "[a.b]\n[[a.b]]",
                             "[[a.b]]\n[[a]]",
                             "[a]\n[a.b]\n[a]",
                             "[a.b]\n[a]\n[a]",
                             "[a.b]\n[a]\n[a.b]",
                             "a.b=1\n[a]",
                             "[a]\nb.c=1\n[a.b]",
                             "[a]\nb.c.d=1\n[a.b.c]",
                             "[[a]]\n[a.b]\n[[a.b]]",
                             "[[a]]\nb.c=1\n[a.b]",
                             "a.b=[]\n[[a.b]]"})
        EXPECT_FALSE(parse_toml(text)) << text;
}

TEST(TomlDefinitions, AConflictHasItsPlace) {
    EXPECT_EQ(read("a=[{}]\n[a.b]"), "7: in the table header: cannot redefine existing array 'a.b' as table");
    EXPECT_EQ(read("\n[a.b]\n[a]\n b=1"), "14: in the key-value pair: cannot redefine existing table 'b'");
    EXPECT_EQ(read("[[a]]\n[a . b]\n\n[a.b]"),
              "15: in the table header: cannot redefine existing table 'a.b'");
}

// TOML leaves open whether keys with dots may add to a table that only the path of a header defines.
TEST(TomlDefinitions, KnownToTakeDotsBelowAPath) {
    EXPECT_EQ(read("[a.b.c]\n[a]\nb.x=1"), "{a:{b:{c:{},x:1}}}");
    EXPECT_FALSE(parse_toml("[a.b.c]\n[a]\nb.x=1\n[a.b]"));
}

// A header may open such a table if keys with dots added only tables to it. TOML forbids this.
TEST(TomlDefinitions, KnownToTakeWhatTomlForbids) {
    EXPECT_EQ(read("[a.b.c]\n[a]\nb.x.y=1\n[a.b]"), "{a:{b:{c:{},x:{y:1}}}}");
    EXPECT_EQ(read("[a.b.c]\n[a]\nb.x={}\n[a.b]"), "{a:{b:{c:{},x:{}}}}");
}

TEST(TomlDefinitions, WhatStringsMean) {
    const Allowed cases[] = {
        {R"(a="\b\t\n\f\r\"\\")", "{a:'\b\t\n\f\r\"\\'}"},
        {R"(a="\u00e9\u20ac\U0001F600\u0041")", "{a:'é€😀A'}"},
        {R"(a='\u00e9')", "{a:'\\u00e9'}"},
        {"a=\"\"\"\nb\nc\"\"\"", "{a:'b\nc'}"},
        {"a=\"\"\"b\\\n \t\n  c\"\"\"", "{a:'bc'}"},
        {"a='''\r\nb\\\n'''", "{a:'b\\\n'}"},
        {"a=\"\"\"\"b\"\"\"\"\"", "{a:'\"b\"\"'}"},
        {"a='''''b'''", "{a:'''b'}"},
        {"a=\"\"\"\"\"\"", "{a:''}"},
        {"\"\\u0061\".'b'=1", "{a:{b:1}}"},
        {"a=[1979-05-27 07:32:00, '']", "{a:[?,'']}"},
        {"a=[+1_000, -0, 0xfF, 0o17, 0b101]", "{a:[1000,0,255,15,5]}"},
        {"a=[-9223372036854775808, 0x7fffffffffffffff]", "{a:[-9223372036854775808,9223372036854775807]}"},
    };
    for (const auto& [text, means] : cases) EXPECT_EQ(read(text), means) << text;
}

}  // namespace
}  // namespace wq
