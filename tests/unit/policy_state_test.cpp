// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The status while the policy on disk is broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_rig.h"
#include "policy/load_policy.h"
#include "service/status.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const PolicyErrors kBroken = {{"/etc/a.toml", 6, 1, "unknown key \"scop\"", "", 0},
                              {"/etc/b.toml", 1, 1, "x", "", 0}};
constexpr const char* kError = "/etc/a.toml:6:1: unknown key \"scop\"";

class PolicyStateTest : public test::Rig {
  protected:
    json status(const PolicyState& policy) { return status_json(*engine_, nullptr, "running", policy); }
};

TEST_F(PolicyStateTest, OfALoadedPolicy) {
    PolicyState policy;
    policy.loaded(1000);
    EXPECT_EQ(status(policy)["daemon"]["policy"], (json{{"expired", json::array()},
                                                        {"state", "loaded"},
                                                        {"error", nullptr},
                                                        {"since", 1000},
                                                        {"in_force", 1000}}));
}

TEST_F(PolicyStateTest, AfterAReloadThatFailedTheOldOneIsInForce) {
    PolicyState policy;
    policy.loaded(1000);
    policy.broken(kBroken, 2000);
    policy.broken(kBroken, 3000);
    EXPECT_EQ(status(policy)["daemon"]["policy"], (json{{"expired", json::array()},
                                                        {"state", "broken"},
                                                        {"error", kError},
                                                        {"since", 2000},
                                                        {"in_force", 1000}}));
    EXPECT_FALSE(policy.nothing_to_plan_by());
    policy.loaded(4000);
    EXPECT_EQ(status(policy)["daemon"]["policy"]["state"], "loaded");
    EXPECT_EQ(status(policy)["daemon"]["policy"]["in_force"], 4000);
}

TEST_F(PolicyStateTest, AfterABrokenStartTargetsSayThatThereIsNoPolicy) {
    engine_->set_policy(no_policy());
    engine_->observe("the policy is broken");
    opted_out_ = {"writeback"};
    engine_->reconcile();
    PolicyState policy;
    policy.broken(kBroken, 2000);
    const json document = status(policy);
    EXPECT_EQ(document["daemon"]["policy"], (json{{"expired", json::array()},
                                                  {"state", "broken"},
                                                  {"error", kError},
                                                  {"since", 2000},
                                                  {"in_force", nullptr}}));
    const json& targets = document["targets"];
    EXPECT_EQ(targets[0]["reason"], "cannot plan: invalid policy") << targets[0]["name"];
    EXPECT_EQ(targets[1]["reason"], "cannot plan: invalid policy") << targets[1]["name"];
    EXPECT_THAT(targets[2]["reason"].get<std::string>(), HasSubstr("WQ_TUNED_IGNORE"))
        << "so it would be by any policy";
    EXPECT_EQ(status_json(*engine_, nullptr, "running")["targets"][1]["reason"], "no rule matches");
}

}  // namespace
}  // namespace wq
