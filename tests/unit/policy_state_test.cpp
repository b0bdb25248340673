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

}  // namespace
}  // namespace wq
