// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/terminal.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "run_command.h"

namespace wq::ctl {
namespace {

using test::lines_of;
using testing::ElementsAre;
using testing::HasSubstr;

Table status_table() {
    Table table({"TARGET", "SCOPE", "REASON"});
    table.add({"kcryptd-254:0-1", "default (cache)",
               "guard: stays at its baseline until it is judged; plan: coarsest inside an LLC"});
    table.add({"writeback", "smt", "the rule says leave"});
    return table;
}

TEST(Wrap, BreaksAtSpacesAndAListThatIsTooLongAfterAComma) {
    const struct {
        const char* text;
        std::size_t width;
        std::vector<std::string> lines;
    } kCases[] = {
        {"one two three", 7, {"one two", "three"}},
        {"one two three", 6, {"one", "two", "three"}},
        {"one two three", 13, {"one two three"}},
        {"", 5, {""}},
        // A long word sticks out rather than being cut.
        {"a incomprehensible b", 5, {"a", "incomprehensible", "b"}},
        {"incomprehensible", 5, {"incomprehensible"}},
        {"CPUs 0,2,4,6,8,10 of it", 8, {"CPUs", "0,2,4,6,", "8,10 of", "it"}},
        {"0,2,4,6", 4, {"0,2,", "4,6"}},
        {"1000,2", 3, {"1000,2"}},  // no comma fits
        {"one, two", 5, {"one,", "two"}},
    };
    for (const auto& one : kCases) EXPECT_EQ(wrap(one.text, one.width), one.lines) << one.text;
}

TEST(WrapLists, BreaksBetweenListsAndInsideOnlyThoseTooLong) {
    EXPECT_THAT(wrap("0-1,4-5  2-3,6-7", 16), ElementsAre("0-1,4-5  2-3,6-7"));
    EXPECT_THAT(wrap("0-1,4-5  2-3,6-7", 15), ElementsAre("0-1,4-5", "2-3,6-7"));
    EXPECT_THAT(wrap("0-1  2-3,6-7,9  8", 8), ElementsAre("0-1", "2-3,6-7,", "9  8"));
    EXPECT_THAT(wrap("1000-1001", 5), ElementsAre("1000-1001"));
    EXPECT_THAT(wrap("", 5), ElementsAre(""));
}

TEST(Table, WrapsTheLastColumnOrPutsItBelow) {
    EXPECT_EQ(status_table().text(80, false),
              "TARGET           SCOPE            REASON\n"
              "kcryptd-254:0-1  default (cache)  guard: stays at its baseline until it is\n"
              "                                  judged; plan: coarsest inside an LLC\n"
              "writeback        smt              the rule says leave\n");
    EXPECT_EQ(status_table().text(30, false),
              "TARGET\n  SCOPE\n    REASON\nkcryptd-254:0-1\n  default (cache)\n"
              "    guard: stays at its\n    baseline until it is\n    judged; plan: coarsest\n"
              "    inside an LLC\nwriteback\n  smt\n    the rule says leave\n");
}

TEST(Table, SurvivesATerminalOfOneColumnAndColoursTheHeaderOnlyWhereAsked) {
    for (const std::size_t columns : {0U, 1U})
        EXPECT_THAT(status_table().text(columns, false), HasSubstr("writeback"));
    EXPECT_THAT(status_table().text(80, false), testing::Not(HasSubstr("\x1b")));
    EXPECT_THAT(lines_of(status_table().text(80, true))[0], HasSubstr("\x1b"));
    EXPECT_THAT(lines_of(status_table().text(80, true))[1], testing::Not(HasSubstr("\x1b")));
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
