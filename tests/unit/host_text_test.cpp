// SPDX-License-Identifier: LGPL-2.1-or-later
// The output of `status` about the host, from the answer of a daemon.
#include "ctl/render/host_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wq::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const json& status) {
    return host_text(status, true);
}

json isolated(std::size_t kinds_of_work) {
    json work = json::array();
    for (std::size_t i = 0; i < kinds_of_work; i++)
        work.push_back(
            {{"items", 1000 - i}, {"workqueue", "events"}, {"kind", "per-CPU"}, {"function", "f"}});
    return {{"isolcpus", "2-3"},   {"nohz_full", ""}, {"partitions", json::array()},
            {"work_seconds", 7.4}, {"work", work},    {"partitions_complete", true}};
}

TEST(HostText, OfMuchWorkTheFirstTwentyAreShown) {
    json isolation = isolated(23);
    isolation["work_lost"] = 12;
    const std::string text = text_of({{"isolation", isolation}});
    EXPECT_THAT(text, HasSubstr("\n981 "));
    EXPECT_THAT(text, Not(HasSubstr("\n980 ")));
    EXPECT_THAT(text, HasSubstr("\nand 3 more; --json has them\n"));
    EXPECT_THAT(text, HasSubstr("\nand 12 items of others, for which there was no room\n"));
    isolation["work_lost"] = 1;
    EXPECT_THAT(text_of({{"isolation", isolation}}), HasSubstr("\nand 1 item of others, for which"));
    EXPECT_THAT(text_of({{"isolation", isolated(20)}}), Not(HasSubstr("more")));
}

TEST(HostText, PartitionsThatWereNotAllLookedAt) {
    json isolation = isolated(0);
    isolation["partitions"] = {{{"type", "isolated"}, {"cpus", "4-5"}, {"cgroup", nullptr}}};
    EXPECT_THAT(text_of({{"isolation", isolation}}), Not(HasSubstr("more cgroups")));
    isolation["partitions_complete"] = false;
    const std::string text = text_of({{"isolation", isolation}});
    EXPECT_THAT(text, HasSubstr("isolated partition  4-5   (not found)\n"));
    EXPECT_THAT(text, HasSubstr("There are more cgroups than were looked at.\n"));
}

TEST(HostText, PodsThatDifferFromTheTopology) {
    json kernel{{"release", "7.2.13"},
                {"features", {{"cache_shard", true}, {"pwlocks", false}}},
                {"pods", {{"differ", json::object()}}}};
    EXPECT_THAT(text_of({{"kernel", kernel}}),
                HasSubstr("Kernel 7.2.13: cache_shard yes, exact_parsing unknown, deferred_wakeups unknown, "
                          "pwlocks no\n"));
    EXPECT_THAT(text_of({{"kernel", kernel}}), Not(HasSubstr("kernel's pods")));
    kernel["pods"]["differ"] = {{"cache", json::array()}, {"smt", json::array()}};
    EXPECT_THAT(text_of({{"kernel", kernel}}), HasSubstr("The kernel's pods of cache, smt differ from"));
}

}  // namespace
}  // namespace wq::ctl
