// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan` and `explain` of a machine on which wq-tuned has written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "ctl/options.h"
#include "fake_machine.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"
#include "service/status.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// One LLC of 12 cores with two threads: from `cache` the plan is smt, and cpu is finer.
class PlanOfMachine : public testing::Test {
  protected:
    PlanOfMachine() { tree_.add(test::cpu_tree({.cores = 12, .threads = 2})); }

    template <class Command>
    [[nodiscard]] std::string printed(bool as_json, const Command& command) const {
        ctl::Options options;
        options.root = tree_.root();
        options.json = as_json;
        testing::internal::CaptureStdout();
        EXPECT_EQ(command(options), ctl::kOk);
        return testing::internal::GetCapturedStdout();
    }
    [[nodiscard]] std::string text() const { return printed(false, ctl::plan); }
    // The plan of the target NAME: what the file holds, and what follows.
    [[nodiscard]] std::string plan_of(const std::string& name) const {
        const json document = json::parse(printed(true, ctl::plan));
        for (const json& target : document["targets"])
            if (target["name"] == name)
                return target["scope"].get<std::string>() + " " + target["effective"].get<std::string>() +
                       ": " + target["action"].get<std::string>() + " " + target["would_compare"].dump();
        return "";
    }
    void write_status(const json& targets) {
        tree_.write("proc/sys/kernel/random/boot_id", read_file("/proc/sys/kernel/random/boot_id").value());
        tree_.write("proc/" + std::to_string(::getpid()) + "/stat", read_file("/proc/self/stat").value());
        tree_.write(
            "run/wq-tuned/status.json",
            status_text(
                {{"daemon", {{"state", "running"}, {"experiments", {{"reason", "random delay: 40 s left"}}}}},
                 {"targets", targets}}));
    }

    test::TempTree tree_{test::kernel_tree({test::workqueue("kcryptd-1", {.cpumask = "ffffff"}),
                                            test::workqueue("writeback", {.cpumask = "ffffff"})},
                                           "cache", "", "ffffff")};
    const std::string file_ = test::wq_path("kcryptd-1");
};

constexpr const char* kFromCache = R"(: compare ["smt","cpu"])";
constexpr const char* kFromSmt = R"(: none ["cpu"])";

TEST_F(PlanOfMachine, StartsFromWhatTheDaemonSaysWasThereBefore) {
    ASSERT_EQ(plan_of("kcryptd-1"), std::string("default cache") + kFromCache);
    tree_.write(file_, "smt\n");
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("smt smt") + kFromSmt);
    json target = {{"name", "kcryptd-1"}, {"baseline", "default"}, {"state", "comparing"}};
    write_status(json::array({target}));
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("smt smt") + kFromCache);
    EXPECT_THAT(printed(false, [](const auto& options) { return ctl::explain(options, "kcryptd-1"); }),
                testing::AllOf(HasSubstr("scope      smt\n"), HasSubstr("cache with smt, then with cpu")));
    target["state"] = "external";
    write_status(json::array({target}));
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("smt smt") + kFromSmt);
}

// What `default` means is @default's baseline.
TEST_F(PlanOfMachine, StartsFromTheBaselineOfDefault) {
    tree_.write(test::kDefaultPath, "smt\n");
    tree_.write(file_, "default (smt)\n");
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("default smt") + kFromSmt);
    json parameter = {{"name", "@default"}, {"baseline", "cache"}, {"state", "kept"}};
    write_status(json::array({parameter}));
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("default smt") + kFromCache);
    parameter["order"] = "pin";
    write_status(json::array({parameter}));
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("default smt") + kFromSmt);
}

// Orders, and why no comparison begins: as the daemon says.
TEST_F(PlanOfMachine, KnowsWhatTheDaemonSays) {
    tree_.write("etc/wq-tuned/wq-tuned.toml", "[[workqueue]]\nmatch = \"*\"\n");
    json parameter = {{"name", "@default"}, {"baseline", "cache"}, {"state", "waiting"}};
    json follower = {
        {"name", "writeback"}, {"baseline", "default"}, {"state", "reverted"}, {"order", "revert"}};
    write_status(json::array({parameter, follower}));
    EXPECT_EQ(plan_of("@default"), "cache cache: skip []");
    EXPECT_THAT(text(), HasSubstr("`writeback` (reverted by an operator's order)"));
    EXPECT_THAT(text(), HasSubstr("\nNo comparison begins now: random delay: 40 s left.\n"));
    follower["order"] = nullptr;
    parameter["order"] = "pin";
    parameter["reason"] = "by an operator's order";
    write_status(json::array({parameter, follower}));
    EXPECT_EQ(plan_of("@default"), "cache cache: skip []");
    parameter["order"] = nullptr;
    write_status(json::array({parameter, follower}));
    EXPECT_THAT(plan_of("@default"), StartsWith("cache cache: compare"));
}

TEST_F(PlanOfMachine, WithoutADaemonStartsFromBaselineJson) {
    const Paths paths{tree_.root()};
    const WorkqueueFs files(paths);
    BaselineEntry entry = entry_of(*files.read("kcryptd-1", files.unbound_mask()));
    entry.announce("smt");
    (void)entry.settle("smt", {});
    BaselineStore store(paths.baseline());
    store.put(entry);
    tree_.write("run/wq-tuned/lock", "");
    ASSERT_TRUE(store.save());
    tree_.write(file_, "smt\n");
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("smt smt") + kFromCache);
    tree_.write(file_, "numa\n");  // by an external writer
    EXPECT_THAT(plan_of("kcryptd-1"), StartsWith("numa numa: "));
    tree_.write(file_, "smt\n");
    tree_.write("run/wq-tuned/baseline.json", "{");
    EXPECT_EQ(plan_of("kcryptd-1"), std::string("smt smt") + kFromSmt);
}

TEST_F(PlanOfMachine, CountsWhatIsComparedWithThePlan) {
    constexpr const char* kRules = "[default_scope]\nmanage = false\n[[workqueue]]\nmatch = \"*\"\n";
    tree_.write("etc/wq-tuned/wq-tuned.toml", std::string(kRules) + "scope = \"auto\"\n");
    EXPECT_THAT(text(), StartsWith("2 of 3 targets would be compared: cache -> smt (2)\n"));
    tree_.write(file_, "smt\n");
    EXPECT_THAT(text(),
                StartsWith("2 of 3 targets would be compared, 1 of them with the plan: cache -> smt (1)\n"));
    tree_.write(test::wq_path("writeback"), "smt\n");
    EXPECT_THAT(text(), StartsWith("2 of 3 targets would be compared\n"));
    tree_.write("etc/wq-tuned/wq-tuned.toml", std::string(kRules) + "scope = \"cpu\"\n");
    EXPECT_THAT(text(),
                StartsWith("2 of 3 targets would be set first: smt -> cpu (2); 2 of 3 targets would"));
}

TEST_F(PlanOfMachine, SaysWhetherItIsWritten) {
    tree_.write("var/lib/wq-tuned/paused", "");
    EXPECT_THAT(text(), HasSubstr("\nNo comparison begins now: paused by `wq-tunectl pause`.\n"));
    tree_.write("etc/wq-tuned/wq-tuned.toml", "[daemon]\nmode = \"observe\"\n");
    EXPECT_THAT(text(), HasSubstr("\nNothing is written or compared now: mode is observe.\n"));
}

// A file that was changed by hand: as if no daemon ran.
TEST_F(PlanOfMachine, ExplainTakesAnyStatus) {
    const auto explain = [](const auto& options) { return ctl::explain(options, "kcryptd-1"); };
    const auto with = [](const char* key, json value) {
        json out = {{"name", "kcryptd-1"}, {"state", "kept"}, {"baseline", "default"}};
        out[key] = std::move(value);
        return json::array({out});
    };
    write_status(with("baseline", "default"));
    EXPECT_THAT(printed(false, explain), HasSubstr("  state      kept\n"));
    for (const json& targets :
         {with("state", 7), with("baseline", json::array()), with("verdict", {{"candidate", 7}}),
          with("comparison", {{"pairs", "many"}, {"effect_percent", 1}})}) {
        SCOPED_TRACE(targets.dump());
        write_status(targets);
        EXPECT_THAT(printed(false, explain), HasSubstr("  planned    smt\n"));
        EXPECT_TRUE(json::accept(printed(true, explain)));
    }
}

}  // namespace
}  // namespace wq
