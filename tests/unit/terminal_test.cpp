// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>

namespace wq::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Table status_table() {
    Table table({"TARGET", "SCOPE", "REASON"});
    table.add({"kcryptd-254:0-1", "default (cache)",
               "guard: stays at its baseline until it is judged; plan: coarsest inside an LLC"});
    table.add({"writeback", "smt", "the rule says leave"});
    return table;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

TEST(Wrap, BreaksAtSpaces) {
    EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
    EXPECT_THAT(wrap("one two three", 6), ElementsAre("one", "two", "three"));
    EXPECT_THAT(wrap("one two three", 13), ElementsAre("one two three"));
    EXPECT_THAT(wrap("", 5), ElementsAre(""));
}

TEST(Wrap, LetsALongWordStickOutRatherThanCutIt) {
    EXPECT_THAT(wrap("a incomprehensible b", 5), ElementsAre("a", "incomprehensible", "b"));
    EXPECT_THAT(wrap("incomprehensible", 5), ElementsAre("incomprehensible"));
}

TEST(Wrap, BreaksAListThatIsTooLongAfterACommaOnly) {
    EXPECT_THAT(wrap("CPUs 0,2,4,6,8,10 of it", 8), ElementsAre("CPUs", "0,2,4,6,", "8,10 of", "it"));
    EXPECT_THAT(wrap("0,2,4,6", 4), ElementsAre("0,2,", "4,6"));
    EXPECT_THAT(wrap("1000,2", 3), ElementsAre("1000,2")) << "no comma fits";
    EXPECT_THAT(wrap("one, two", 5), ElementsAre("one,", "two"));
}

TEST(WrapLists, BreaksBetweenListsAndInsideOnlyThoseTooLong) {
    EXPECT_THAT(wrap_lists({"0-1,4-5", "2-3,6-7"}, 16), ElementsAre("0-1,4-5  2-3,6-7"));
    EXPECT_THAT(wrap_lists({"0-1,4-5", "2-3,6-7"}, 15), ElementsAre("0-1,4-5", "2-3,6-7"));
    EXPECT_THAT(wrap_lists({"0-1", "2-3,6-7,9", "8"}, 8), ElementsAre("0-1", "2-3,6-7,", "9  8"));
    EXPECT_THAT(wrap_lists({"1000-1001"}, 5), ElementsAre("1000-1001"));
    EXPECT_THAT(wrap_lists({}, 5), ElementsAre(""));
}

TEST(Table, IsOneLinePerRowWhereThereIsRoom) {
    EXPECT_EQ(
        status_table().text(200, false),
        "TARGET           SCOPE            REASON\n"
        "kcryptd-254:0-1  default (cache)  guard: stays at its baseline until it is judged; plan: coarsest"
        " inside an LLC\n"
        "writeback        smt              the rule says leave\n");
}

TEST(Table, WrapsTheLastColumnOnEightyColumns) {
    const auto lines = lines_of(status_table().text(80, false));
    ASSERT_EQ(lines.size(), 4U);
    for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_THAT(lines[1], testing::EndsWith("default (cache)  guard: stays at its baseline until it is"));
    EXPECT_EQ(lines[2], std::string(34, ' ') + "judged; plan: coarsest inside an LLC");
}

TEST(Table, PutsTheTextBelowOnThirtyColumns) {
    const auto lines = lines_of(status_table().text(30, false));
    EXPECT_EQ(lines[0], "TARGET");
    EXPECT_EQ(lines[1], "  SCOPE");
    EXPECT_EQ(lines[2], "    REASON");
    EXPECT_EQ(lines[3], "kcryptd-254:0-1");
    EXPECT_EQ(lines[4], "  default (cache)");
    std::string text;
    for (std::size_t i = 5; i + 3 < lines.size(); i++) {
        EXPECT_TRUE(lines[i].starts_with("    ")) << lines[i];
        EXPECT_LE(lines[i].size(), 30U) << lines[i];
        text += lines[i].substr(4) + " ";
    }
    EXPECT_EQ(text, "guard: stays at its baseline until it is judged; plan: coarsest inside an LLC ");
    EXPECT_THAT(lines.back(), "    the rule says leave");
}

TEST(Table, SurvivesATerminalOfOneColumn) {
    EXPECT_THAT(status_table().text(1, false), HasSubstr("writeback"));
    EXPECT_THAT(status_table().text(0, false), HasSubstr("writeback"));
}

TEST(Table, LeavesNoSpacesAtTheEnds) {
    for (const std::size_t columns : {30U, 80U, 200U})
        for (const std::string& line : lines_of(status_table().text(columns, false)))
            EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
}

TEST(Table, ColoursTheHeaderOnlyWhereAsked) {
    const std::string escape = "\x1b";
    EXPECT_THAT(status_table().text(80, false), Not(HasSubstr(escape)));
    EXPECT_THAT(lines_of(status_table().text(80, true))[0], HasSubstr(escape));
    EXPECT_THAT(lines_of(status_table().text(80, true))[1], Not(HasSubstr(escape)));
}

TEST(Table, DoesNotObeyANameThatIsAnEscapeSequence) {
    Table table({"A", "B"});
    table.add({"\x1b[2J", "tab\there\x7f"});
    EXPECT_EQ(lines_of(table.text(80, false))[1], "?[2J  tab?here?");
}

TEST(Printable, MasksControlsAndLeavesTheRestOfUtf8) {
    EXPECT_EQ(printable("kcryptd_io-254:0"), "kcryptd_io-254:0");
    EXPECT_EQ(printable("héte-é€𐍈"), "héte-é€𐍈");
    EXPECT_EQ(printable("\xc3\x9b"), "\xc3\x9b") << "its second byte alone would be CSI";
    EXPECT_EQ(printable("a\x9b"
                        "2J"),
              "a?2J");
    EXPECT_EQ(printable("a\xc2\x9b"
                        "2J"),
              "a??2J");
    EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "????\xc2\xa0");
    EXPECT_EQ(printable("\xe0\x82\x9b"), "???") << "too long a form of U+009B";
    EXPECT_EQ(printable("\xc3"), "?");
}

TEST(Terminal, TakesItsWidthFromColumns) {
    ::setenv("COLUMNS", "30", 1);
    EXPECT_EQ(terminal_columns(), 30U);
    for (const char* nonsense : {"0", "-3", "wide", ""}) {
        ::setenv("COLUMNS", nonsense, 1);
        EXPECT_GE(terminal_columns(), 1U) << nonsense;
    }
    ::unsetenv("COLUMNS");
}

TEST(Terminal, IsDumbWhereTermSaysSoOrNothing) {
    for (const char* dumb : {"", "dumb", "unknown"}) {
        ::setenv("TERM", dumb, 1);
        EXPECT_TRUE(terminal_is_dumb()) << dumb;
        EXPECT_FALSE(wants_colour()) << dumb;
    }
    ::unsetenv("TERM");
    EXPECT_TRUE(terminal_is_dumb());
    for (const char* other : {"xterm", "linux", "vt220"}) {
        ::setenv("TERM", other, 1);
        EXPECT_FALSE(terminal_is_dumb()) << other;
    }
}

TEST(Terminal, HasNoColourWhereTheUserSaysSo) {
    ::setenv("NO_COLOR", "1", 1);
    EXPECT_FALSE(wants_colour());
    ::unsetenv("NO_COLOR");
}

}  // namespace
}  // namespace wq::ctl
