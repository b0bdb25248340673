// SPDX-License-Identifier: LGPL-2.1-or-later
// The status while the policy on disk is broken; the pause; when to look again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <syslog.h>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "fake_log.h"
#include "fake_machine.h"
#include "fake_rig.h"
#include "policy/load_policy.h"
#include "service/loop.h"
#include "service/parts.h"
#include "service/status.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using test::File;
using test::TempTree;
using testing::HasSubstr;

const PolicyErrors kBroken = {{"/etc/a.toml", 6, 1, "unknown key \"scop\"", ""},
                              {"/etc/b.toml", 1, 1, "x", ""}};
constexpr const char* kError = "/etc/a.toml:6:1: unknown key \"scop\"";

class PolicyStateTest : public test::Rig {
  protected:
    json status(const PolicyState& policy) { return status_json(*engine_, nullptr, "running", policy); }
    // What the status says of POLICY.
    json said(const PolicyState& policy) { return status(policy)["daemon"]["policy"]; }
    static json is(const char* state, const json& error, int since, const json& in_force) {
        return {{"expired", json::array()},
                {"state", state},
                {"error", error},
                {"since", since},
                {"in_force", in_force}};
    }
};

TEST_F(PolicyStateTest, AfterAReloadThatFailedTheOldOneIsInForce) {
    PolicyState policy;
    policy.loaded(1000);
    EXPECT_EQ(said(policy), is("loaded", nullptr, 1000, 1000));
    policy.broken(kBroken, 2000);
    policy.broken(kBroken, 3000);
    EXPECT_EQ(said(policy), is("broken", kError, 2000, 1000));
    EXPECT_FALSE(policy.nothing_to_plan_by());
    policy.loaded(4000);
    EXPECT_EQ(said(policy), is("loaded", nullptr, 4000, 4000));
}

TEST_F(PolicyStateTest, AfterABrokenStartTargetsSayThatThereIsNoPolicy) {
    engine_->set_policy(no_policy());
    engine_->observe("the policy is broken");
    opted_out_ = {"writeback"};
    engine_->reconcile();
    PolicyState policy;
    policy.broken(kBroken, 2000);
    const json document = status(policy);
    EXPECT_EQ(said(policy), is("broken", kError, 2000, nullptr));
    const json& targets = document["targets"];
    EXPECT_EQ(targets[0]["reason"], "cannot plan: invalid policy") << targets[0]["name"];
    EXPECT_EQ(targets[1]["reason"], "cannot plan: invalid policy") << targets[1]["name"];
    EXPECT_THAT(targets[2]["reason"].get<std::string>(), HasSubstr("WQ_TUNED_IGNORE"))
        << "so it would be by any policy";
    EXPECT_EQ(status_json(*engine_, nullptr, "running")["targets"][1]["reason"], "no rule matches");
}

// The Parts of a daemon after its start.
struct PauseTest : testing::Test {
    [[nodiscard]] Parts parts() {
        return {paths, log, record, [](const std::string&) { return false; }};
    }
    TempTree tree{test::kernel_tree({test::workqueue("kcryptd")})};
    Paths paths{tree.root()};
    WriteAtOnce record;
    test::FakeLog log;
};

TEST_F(PauseTest, LastsThroughARestartUntilItIsEnded) {
    EXPECT_FALSE(parts().experiment.is_paused());
    Parts(paths, log, record, {}).pause(true);
    const std::size_t lines = log.lines.size();
    Parts second = parts();
    EXPECT_TRUE(second.experiment.is_paused());
    EXPECT_EQ(log.lines.size(), lines + 1) << "a start says so";
    second.pause(true);
    EXPECT_EQ(log.lines.size(), lines + 1) << "an order of what is so is no news";
    second.pause(false);
    EXPECT_FALSE(parts().experiment.is_paused());
    EXPECT_FALSE(tree.exists("var/lib/wq-tuned/paused"));
    EXPECT_EQ(log.at_least(LOG_WARNING), 0U);
}

TEST_F(PauseTest, HoldsAndIsLoggedWhereItCannotBeRecorded) {
    tree.add(File("var", "no folder"));
    Parts now = parts();
    const std::size_t before = log.at_least(LOG_WARNING);
    now.pause(true);
    EXPECT_TRUE(now.experiment.is_paused());
    EXPECT_EQ(log.at_least(LOG_WARNING), before + 1);
    EXPECT_THAT(log.lines.back().text,
                testing::HasSubstr("the order is in force only until the daemon ends"));
}

enum class What { event, looked, failed };

struct Moment {
    What what;
    std::uint64_t at;                  // ms
    std::optional<std::uint64_t> due;  // ms, when the next look is due then
};

TEST(Agenda, WaitsForTheEndOfABurstAndTriesAgainAfterFailures) {
    using enum What;
    constexpr auto never = std::nullopt;
    const std::vector<std::pair<const char*, std::vector<Moment>>> cases = {
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
        for (const Moment& step : steps) {
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
