// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "service/metrics.h"

namespace wq {
namespace {

struct Seen {
    CpuSet cpus;
    std::vector<StartedWork> started;
    std::map<std::string, std::uint64_t> items;  // expected afterwards
};

TEST(IsolatedItems, AreCountedFromTheFirstLookOn) {
    const std::map<const char*, std::vector<Seen>> cases = {
        {"the same",
         {{{4, 5}, {{1, "events", 100}}, {{"events", 0}}},
          {{4, 5}, {{1, "events", 130}}, {{"events", 30}}},
          {{4, 5}, {{1, "events", 131}}, {{"events", 31}}}}},
        {"a workqueue that is new began at zero",
         {{{4}, {{1, "events", 100}}, {{"events", 0}}},
          {{4}, {{1, "events", 100}, {2, "kcryptd", 9}}, {{"events", 0}, {"kcryptd", 9}}}}},
        {"one at the place of another began at zero too",
         {{{4}, {{1, "kcryptd", 100}}, {{"kcryptd", 0}}},
          {{4}, {{1, "kcryptd", 7}}, {{"kcryptd", 7}}},
          {{4}, {{1, "other", 50}}, {{"other", 50}}}}},
        {"others of one name are one, and a counter does not fall",
         {{{4}, {{1, "xfs", 1}, {2, "xfs", 2}}, {{"xfs", 0}}},
          {{4}, {{1, "xfs", 11}, {2, "xfs", 22}}, {{"xfs", 30}}},
          {{4}, {{2, "xfs", 23}}, {{"xfs", 31}}},
          {{4}, {{3, "other", 1}}, {{"other", 1}}},
          {{4}, {{2, "xfs", 5}}, {{"xfs", 5}}}}},
        {"what other CPUs did before they were isolated disturbed nothing",
         {{{4}, {{1, "events", 100}}, {{"events", 0}}},
          {{4}, {{1, "events", 110}}, {{"events", 10}}},
          {{4, 5}, {{1, "events", 5000}}, {{"events", 10}}},
          {{4, 5}, {{1, "events", 5003}}, {{"events", 13}}},
          {{}, {}, {}}}},
    };
    for (const auto& [name, looks] : cases) {
        SCOPED_TRACE(name);
        IsolatedItems items;
        for (const Seen& look : looks) {
            items.add(look.cpus, look.started);
            EXPECT_EQ(items.items(), look.items);
            EXPECT_EQ(items.cpus(), look.cpus);
        }
    }
}

}  // namespace
}  // namespace wq
