// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/recording.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

const std::string kHead = "trial,pair,arm,counter,value\n";
const std::string kGood = kHead + "a,1,baseline,latency,100\na,1,candidate,latency,110\n";

// "LINE: REASON" of the error in TEXT; "none" if there is no error.
std::string mistake(const std::string& text) {
    const auto trials = read_recording(text);
    return trials ? "none" : std::to_string(trials.error().line) + ": " + trials.error().reason;
}

std::string mistake_of_row(const std::string& row) {
    return mistake(kGood + row + "\n");
}

TEST(Recording, KeepsTheOrderOfTheFile) {
    // Trials are interleaved, pairs are not in numerical order, and each pair has another order of counters.
    const auto trials = read_recording(
        kHead +
        "z,9,baseline,tail,1\nz,9,baseline,latency,2\na,1,baseline,x,0.5\nz,9,candidate,latency,3\n"
        "z,9,candidate,tail,4\nz,10,candidate,latency,5\nz,10,candidate,tail,6\na,1,candidate,x,1e3\n"
        "z,10,baseline,tail,7\nz,10,baseline,latency,8");
    ASSERT_TRUE(trials);
    ASSERT_EQ(trials->size(), 2U);
    const RecordedComparison& z = trials->front();
    EXPECT_EQ(z.name, "z");
    ASSERT_EQ(z.pairs.size(), 2U);
    EXPECT_EQ(z.counters[0].name, "tail");
    EXPECT_EQ(z.counters[1].name, "latency");
    EXPECT_EQ(z.pairs[0][1].candidate, 3) << "pair 9 came first";
    EXPECT_EQ(z.pairs[1][0].reference, 7);
    const RecordedComparison& a = trials->back();
    EXPECT_EQ(a.counters.front().name, "x") << "trials may have different counters";
    EXPECT_EQ(a.pairs[0][0].reference, 0.5);
    EXPECT_EQ(a.pairs[0][0].candidate, 1000);
}

TEST(Recording, TakesWhatSpreadsheetsAndEditorsWrite) {
    std::string windows;
    for (const char c : kGood) windows += c == '\n' ? "\r\n" : std::string(1, c);
    for (const std::string& text : {"\xef\xbb\xbf" + kGood, kGood + "\n", kGood + "\r\n\r\n\n", windows})
        EXPECT_EQ(mistake(text), "none") << text;
}

TEST(Recording, NeedsItsHeaderAndRows) {
    for (const std::string& text : {std::string(), std::string("a,1,baseline,latency,100\n"),
                                    std::string("trial,pair,arm,counter,value,unit\n"), "\n" + kGood})
        EXPECT_EQ(mistake(text), "1: the first line must be trial,pair,arm,counter,value");
    EXPECT_EQ(mistake(kHead), "1: no rows follow the header");
    EXPECT_EQ(mistake("trial,pair,arm,counter,value"), "1: no rows follow the header");
}

TEST(Recording, RefusesValuesThatAreNoCosts) {
    for (const char* bad :
         {"nan",  "-nan", "inf", "-inf", "infinity", "0",   "0.0", "-0",     "-1",    "1e400", "1e-400",
          "0x10", "1 ",   " 1",  "+1",   "1.5.2",    "ten", "1;2", "1.1e60", "9e-61", "1e300", "1e-300"})
        EXPECT_EQ(mistake_of_row(std::string("a,2,baseline,latency,") + bad),
                  std::string("4: value \"") + bad + "\" is not a number from 1e-60 to 1e+60");
    EXPECT_EQ(mistake_of_row("a,2,baseline,latency,1e60\na,2,candidate,latency,1e-60"), "none");
}

TEST(Recording, NamesEachMistake) {
    for (const auto& [row, says] : std::vector<std::pair<std::string, std::string>>{
             {"\na", "4: 1 field instead of 5"},
             {"a", "4: 1 field instead of 5"},
             {"a,2,baseline,latency", "4: 4 fields instead of 5"},
             {"a,2,baseline,latency,1,5", "4: 6 fields instead of 5"},
             {",2,baseline,latency,1", "4: trial is empty"},
             {"a,,baseline,latency,1", "4: pair is empty"},
             {"a,2,baseline,,1", "4: counter is empty"},
             {"a,2,baseline,latency,", "4: value is empty"},
             {"a,2,Baseline,latency,1", "4: arm \"Baseline\" is neither baseline nor candidate"},
             {"a,2,baseline,\"latency\",1", "4: quotes are not supported; names must not contain commas"},
             {"a,1,candidate,latency,111",
              "4: a second candidate value of counter \"latency\" in pair \"1\" of trial \"a\""},
             {"a,2,baseline,latency,100",
              "4: pair \"2\" of trial \"a\" has no candidate value of counter \"latency\""},
             {"a,2,candidate,latency,100",
              "4: pair \"2\" of trial \"a\" has no baseline value of counter \"latency\""},
             // Pairs 1 and 2 have different counters; the error names pair 1.
             {"a,2,baseline,tail,1\na,2,candidate,tail,1",
              "2: pair \"1\" of trial \"a\" has no baseline value of counter \"tail\""},
             {"a,1,baseline,tail,1\na,1,candidate,tail,1\na,2,baseline,tail,1\na,2,candidate,tail,1",
              "6: pair \"2\" of trial \"a\" has no baseline value of counter \"latency\""},
             // Nothing that a terminal would obey.
             {"a,2,base\x1b[2J\xff,latency,1", "4: arm \"base?[2J?\" is neither baseline nor candidate"},
             {std::string("a,2,baseline,latency,1") + '\0',
              "4: value \"1?\" is not a number from 1e-60 to 1e+60"}})
        EXPECT_EQ(mistake_of_row(row), says);
    EXPECT_LT(mistake_of_row("a,2," + std::string(100'000, 'x') + ",latency,1").size(), 120U);
}

}  // namespace
}  // namespace wq
