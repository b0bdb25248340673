// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The parser accepts what TOML 1.0 allows, except for the few cases named here. What TOML forbids is in
// policy_documents_test.cpp, the rules for keys and tables are in toml_definitions_test.cpp.
#include <gtest/gtest.h>

#include "policy/toml_table.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::repeated;
using Texts = std::vector<std::string>;

PolicyErrors toml_errors(const std::string& text) {
    const SourceText source("policy.toml", text);
    PolicyErrors errors;
    TomlTable::parse(source, errors);
    return errors;
}

bool is_toml(const std::string& text) {
    return toml_errors(text).empty();
}

TEST(PolicyToml, KnownToBeRefusedThoughToml) {
    EXPECT_FALSE(is_toml("a = \"\\u0000\""));
    EXPECT_FALSE(is_toml("x = " + repeated("[", 16) + "1" + repeated("]", 16)));
    EXPECT_FALSE(is_toml(repeated("a.", 129) + "a = 1"));
    EXPECT_FALSE(is_toml("#" + std::string(4096, 'x')));
    EXPECT_FALSE(is_toml("x = 1e400"));
    EXPECT_FALSE(is_toml("x = 2016-12-31T23:59:60Z"));  // a leap second
    EXPECT_FALSE(is_toml("x = [0x" + std::string(3000, '0') + "1]"));
    EXPECT_FALSE(is_toml("x = 1." + std::string(200, '0')));
}

TEST(PolicyToml, WhatIsAllowedIsTaken) {
    const std::vector<std::string> texts = {
        // Numbers, words, dates.
        "x = +99\ny = 42\nz = 0\nw = -17\nv = +0\nu = -0", "x = 1_000\ny = 1_2_3",
        "x = 9223372036854775807\ny = -9223372036854775808",
        "x = 0xDEADBEEF\ny = 0xdead_beef\nz = 0o755\nw = 0b1101\nv = 0x0\nu = 0b0_1",
        "x = 0x7FFFFFFFFFFFFFFF", "x = 0o777777777777777777777", "x = 0b" + std::string(63, '1'),
        "0b" + std::string(63, '1') + " = 1", "x = +1.0\ny = 3.1415\nz = -0.01\nw = 5e+22\nv = -2E-2",
        "x = 1e06\ny = 6.626e-34\nz = 224_617.445_991\nw = 1e1_0\nv = 0e0",
        "x = inf\ny = +inf\nz = -inf\nw = nan\nv = -nan", "x = true\ny = false", "x = 1979_05_27",
        "x = 1979-05-27 # c\ny = 07:32:00 ", "x = 1979-05-27T07:32:00Z", "x = 1979-05-27 07:32:00",
        "x = 1979-05-27t07:32:00z", "x = 1979-05-27T00:32:00.999999-07:00",
        "x = 2000-02-29\ny = 2024-02-29T23:59:59Z",
        // Strings.
        "x = ''\ny = \"\"\nz = ''''''\nw = \"\"\"\"\"\"", "x = \"\"\"\"a\"\"\"\"", "x = '''''a'''''",
        "x = \"\"\"\"\"\"\"\"", "x = \"\"\"a\\\n \n b\"\"\"", "x = \"\"\"a \\   \n b\"\"\"",
        R"(x = "\b\t\n\f\r\"\\\u00E9\U0001F600\uFFFF\u0001")", R"(x = 'C:\path\new')", "x = \"tab\there\"",
        "x = \"é 漢 😀 \ufeff \u2028\" # é 漢 😀 \ufeff", "x = \"\"\"a\"\"b\"\"\"", "x = '''\r\na\r\n'''",
        // Arrays and inline tables.
        "x = []", "x = [[ ], [], # c\n]", "x = {a = [ ]}", "x = [1, 2,]",
        "x = [\n  1, # c\n  2\n  # c\n  ,\n]", "x = [1, 'a', 2.5, true, 07:32:00, {a = 1}, [2]]",
        "x = [{a = 1}, {}]", "x = [ # [\n  '#', \"]\", # ]\n]", "x = [''']''', '[']", "x = {}\ny = {  }",
        "x = {a = {b = {c = {}}}}", "x = { a.b = 1, a.c = 2 }", "x = {a = [1,\n2]}", "x = {a = '''\nb\n'''}",
        "x = {'a b' = 1, \"c\" = 2}", "x = " + repeated("[", 15) + "1" + repeated("]", 15),
        "x = " + repeated("{a = ", 15) + "1" + repeated("}", 15), "x = [" + repeated("1, ", 1300) + "]",
        // Keys.
        "a-b_c9 = 1", "1234 = 1\n1.2 = 1\n3.14159 = 'pi'", "-1 = 1\n_ = 1\n- = 1",
        "true = 1\ninf = 1\nnan = 2", "0b = 1\n0x = 1\n0xF = 1", "1979-05-27 = 1",
        std::string(30, '9') + " = 1", "'' = 1", "'a.b' = 1\n'a\"b' = 1\n\"a'b\" = 1",
        "a . b = 1\na\t.\tc\t=\t1", "a.'b.c'.\"d\" = 1", "\"\\u00e9\" = 1", "\ta = 1\t# c", "a='1'#c",
        repeated("a.", 128) + "a = 1", "[" + repeated("a.", 128) + "a]",
        // Tables, in any order.
        "[a]\n[ b ]\n[ c . d ]\n[e.'b c']\n['']\n[f.\"\"]", "[1]\n[true]\n[-]\n\t[a]#c",
        "[[ a ]]\n[[b . c]]\n[[a]] # c", "[a]\n[a.b]\n[c]\n[a.d]", "[a.b]\n[a]\nc = 1",
        "[a.b.c.d]\n[a.b]\n[a]", "[a.b]\n[c]\n[a]\nx = 1", "a.b = 1\na.c = 2", "[a]\nb.c = 1\nb.d = 2\n[a.e]",
        "[[a]]\n[a.b]\n[[a]]\n[a.b]", "[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]", "[[a]]\n[a.b.c]\n[[a.b.d]]",
        "[[a]]\n[b]\n[[a]]\n[a.c]", "a = 1\n[b]\na = 1", "[[a]]\nb.c = 1\n[[a]]\nb.c = 2",
        // Empty or almost empty.
        "", "\n\n", " \t", "#", "#\n#", "\r\n# c\r\n[a]\r\n", "\ufeff", "\ufeffa = 1", "\ufeff# c", "# \t c",
        "#" + std::string(4000, 'x'), "x = '" + std::string(4000, 'y') + "'"};
    for (const std::string& text : texts)
        for (const char* end : {"", "\n", "\r\n", "\nz9 = 1\n", " # c"}) {
            const PolicyErrors errors = toml_errors(text + end);
            EXPECT_TRUE(errors.empty()) << errors[0].text() << "\n" << text.substr(0, 200);
        }
}

}  // namespace
}  // namespace wq
