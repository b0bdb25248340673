// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/loop.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace wq {
namespace {

enum class What { event, looked, failed };

struct Step {
    What what;
    std::uint64_t at;                  // ms
    std::optional<std::uint64_t> due;  // ms, when the next look is due then
};

TEST(Agenda, WaitsForTheEndOfABurstAndTriesAgainAfterFailures) {
    using enum What;
    constexpr auto never = std::nullopt;
    const std::vector<std::pair<const char*, std::vector<Step>>> cases = {
        {"a lone event", {{event, 5000, 5200}}},
        {"a burst, also at the time 0", {{event, 0, 200}, {event, 150, 350}, {event, 349, 549}}},
        {"at most a second",
         {{event, 1000, 1200},
          {event, 1190, 1390},
          {event, 1380, 1580},
          {event, 1570, 1770},
          {event, 1760, 1960},
          {event, 1950, 2000}}},
        {"anew after a look",
         {{event, 1000, 1200}, {event, 1190, 1390}, {looked, 1900, never}, {event, 2100, 2300}}},
        {"failures",
         {{failed, 0, 250},
          {failed, 250, 750},
          {failed, 750, 1750},
          {failed, 1750, 3750},
          {failed, 3750, 7750},
          {failed, 7750, 11750},
          {looked, 11750, never},
          {failed, 20000, 20250}}},
        {"an event before a retry",
         {{failed, 0, 250}, {failed, 250, 750}, {event, 300, 500}, {event, 400, 600}}},
        {"an event after a retry was due", {{failed, 0, 250}, {event, 1000, 1200}}},
    };
    for (const auto& [name, steps] : cases) {
        SCOPED_TRACE(name);
        Agenda agenda;
        EXPECT_EQ(agenda.due(), never);
        for (const Step& step : steps) {
            if (step.what == event)
                agenda.event(step.at * 1000);
            else
                agenda.looked(step.what == failed, step.at * 1000);
            EXPECT_EQ(agenda.due(), step.due ? std::optional(*step.due * 1000) : never) << step.at;
        }
    }
}

}  // namespace
}  // namespace wq
