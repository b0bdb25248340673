// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The status while the policy on disk is broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/options.h"
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

TEST_F(PolicyStateTest, WithoutADaemonTheOneOnDiskIsLookedAt) {
    tree_.write("etc/wq-tuned/wq-tuned.toml", "[daemon]\nmod = \"guard\"\n");
    ctl::Options options;
    options.root = tree_.root();
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::status(options), ctl::kNoDaemon);
    std::fflush(stdout);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(text.substr(0, text.find('\n')),
              "the policy on disk is broken: " + tree_.path("etc/wq-tuned/wq-tuned.toml") +
                  ":2:1: unknown key \"mod\" in [daemon]; did you mean \"mode\"?; none is in force");
    EXPECT_THAT(text, HasSubstr("cannot plan: invalid policy"));
    options.json = true;
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::status(options), ctl::kNoDaemon);
    std::fflush(stdout);
    const json document = json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(document["daemon"]["policy"]["state"], "broken");
    EXPECT_TRUE(document["daemon"]["policy"]["since"].is_null());
    EXPECT_THAT(document["daemon"]["policy"]["error"].get<std::string>(), HasSubstr("wq-tuned.toml:2:1: "));
}

// What `status --json` prints without a daemon.
json absent_status(const std::string& root) {
    ctl::Options options;
    options.root = root;
    options.json = true;
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::status(options), ctl::kNoDaemon);
    std::fflush(stdout);
    return json::parse(testing::internal::GetCapturedStdout());
}

TEST_F(PolicyStateTest, WithoutADaemonASwitchAndAPauseAreTold) {
    const auto reason = [&] {
        const json document = absent_status(tree_.root());
        return document["daemon"]["reason"].get<std::string>();
    };
    EXPECT_EQ(reason(), "");
    tree_.write("var/lib/wq-tuned/paused", "");
    EXPECT_EQ(reason(), "paused by `wq-tunectl pause`");
    tree_.write("etc/wq-tuned/disabled", "");
    tree_.write("proc/cmdline", "quiet wq_tuned=off\n");
    EXPECT_EQ(reason(), "wq_tuned=off on the kernel command line, and paused by `wq-tunectl pause`");
}

TEST_F(PolicyStateTest, WithoutADaemonRecordsThatCannotBeReadAreTold) {
    tree_.write("etc/wq-tuned/wq-tuned.toml", "[[workqueue]]\nmatch = \"kcryptd\"\ncpumask = \"0-3\"\n");
    const json whole = absent_status(tree_.root());
    ASSERT_EQ(whole["masks"].size(), 1U);
    EXPECT_EQ(whole["masks"][0]["baseline"], "0-23");
    tree_.write("run/wq-tuned/masks.json", "");
    tree_.write("var/lib/wq-tuned/verdicts.json", "{");
    tree_.add(test::Dir("var/lib/wq-tuned/ledger.json"));
    const json document = absent_status(tree_.root());
    EXPECT_EQ(
        document["daemon"]["reason"],
        "the record of masks cannot be read: " + tree_.path("run/wq-tuned/masks.json") +
            ": empty, and the verdicts cannot be read: " + tree_.path("var/lib/wq-tuned/verdicts.json") +
            ": cut off, and the ledger cannot be read: " + tree_.path("var/lib/wq-tuned/ledger.json") +
            ": reading: Is a directory");
    ASSERT_EQ(document["masks"].size(), 1U);
    EXPECT_TRUE(document["masks"][0]["baseline"].is_null()) << "what the file holds may be ours";
}

}  // namespace
}  // namespace wq
