// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/observe/top_table.h"

namespace wq::ctl {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

TEST(TopGraph, ShowsRatesAndWaits) {
    const std::vector<HistoryPoint> points{{1, 10, 1000, 10'000},
                                           {1, 0, std::nullopt, std::nullopt},
                                           {1, 40, 1000, 1'000'000},
                                           {1, 20, 100'000, 100'000}};
    EXPECT_THAT(graph_lines(points, false, 80, 11),
                ElementsAre("ITEMS/S  now 20, mean 18",               //
                            StartsWith("    40|"), EndsWith("  # "),  //
                            EndsWith("  ##"), EndsWith("# ##"),       //
                            "WAIT from queueing to start, # P50, : P99, log scale  now 100us, 100us",
                            EndsWith("  : "), EndsWith("  :#"), EndsWith(": :#"),  //
                            EndsWith("# ##"), EndsWith("now")));
}

TEST(TopGraph, NamesTheEndsOfItsScales) {
    const auto lines = graph_lines({{1, 10, 1000, 10'000}, {1, 5000, 2000, 84'000'000}}, false, 40, 21);
    ASSERT_EQ(lines.size(), 21U);
    EXPECT_THAT(lines[1], StartsWith("  5000|"));
    EXPECT_THAT(lines[9], StartsWith("     0|"));
    EXPECT_THAT(lines[11], StartsWith("  84ms|"));
    EXPECT_THAT(lines[19], StartsWith(" 1.0us|"));
    EXPECT_THAT(lines[20], StartsWith("       -2 s"));
    EXPECT_THAT(lines[19], EndsWith("##"));
    EXPECT_THAT(lines[1], EndsWith(" #")) << "what is small still shows";
    EXPECT_THAT(lines[9], EndsWith("##"));
}

TEST(TopGraph, SqueezesManyIntervalsIntoItsColumns) {
    std::vector<HistoryPoint> points(600, {1, 10, 1000, 1000});
    points[599] = {1, 370, 1000, 64'000};
    const auto lines = graph_lines(points, false, 80, 21);
    for (const auto& line : lines) EXPECT_LE(line.size(), 80U) << line;
    // 600 points, nine per column, need 67 of the 73 columns. The last column has eight times 10 and one 370.
    EXPECT_THAT(lines[0], StartsWith("ITEMS/S  now 370, mean 11"));
    EXPECT_THAT(lines[1], StartsWith("    50|"));
    EXPECT_THAT(lines[1], EndsWith(" #"));
    EXPECT_EQ(lines[9].size(), 80U);
    EXPECT_THAT(lines[9], EndsWith("#"));
    EXPECT_THAT(lines[11], StartsWith("  64us|"));
    EXPECT_THAT(lines[20], StartsWith("       -10.0 min"));
}

TEST(TopGraph, OfAFunctionHasItsMeanTime) {
    const auto lines = graph_lines({{1, 10, std::nullopt, 5000}}, true, 80, 11);
    EXPECT_EQ(lines[5], "MEAN from start to end, log scale  now 5.0us");
    EXPECT_THAT(lines[9], EndsWith("#"));
}

TEST(TopGraph, OfNothingIsEmpty) {
    const auto idle = graph_lines({{1, 0, std::nullopt, std::nullopt}}, false, 80, 11);
    EXPECT_EQ(idle[0], "ITEMS/S  now 0, mean 0");
    EXPECT_THAT(idle[5], EndsWith("now -, -"));
    EXPECT_THAT(idle[6], StartsWith("     -|"));
    for (const auto& line : idle) EXPECT_EQ(line.find('#', 40), std::string::npos) << line;
    EXPECT_EQ(graph_lines({}, false, 80, 11).size(), 11U);
}

TEST(TopGraph, FitsWhereThereIsLittleRoom) {
    const std::vector<HistoryPoint> points(50, {1, 10, 1000, 84'000'000});
    for (std::size_t columns = 1; columns < 30; columns++)
        for (std::size_t lines = 1; lines < 12; lines++) {
            const auto graph = graph_lines(points, false, columns, lines);
            EXPECT_LE(graph.size(), lines);
            for (const auto& line : graph) EXPECT_LE(line.size(), columns);
        }
}

TEST(TopHelp, FitsA24LineTerminal) {
    EXPECT_FALSE(help_lines().empty());
    EXPECT_LE(help_lines().size(), 22U);
    for (const auto& line : help_lines()) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace wq::ctl
