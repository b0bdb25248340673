// SPDX-License-Identifier: LGPL-2.1-or-later
// The command `wq-tunectl fleet`, on files.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ctl/fleet/fleet.h"
#include "fake_machine.h"
#include "fleet_lines.h"
#include "plan/plan.h"
#include "policy/load_policy.h"
#include "run_command.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::File;
using test::fleet_key;
using test::host_line;
using test::kFleetTime;
using test::lines_of;
using test::measured;
using test::Ran;
using test::TempTree;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

class FleetCommand : public testing::Test {
  protected:
    static Ran run(const std::vector<std::string>& words) {
        return test::captured([&] { return test::run_command(set_up_fleet, words); });
    }
    // Writes the ledgers of COUNT hosts for KEY to the file NAME, and returns its path.
    std::string hosts(const std::string& name, unsigned count, double effect,
                      const FleetKey& key = fleet_key()) {
        std::string text;
        for (unsigned i = 0; i < count; i++)
            text += text_of(host_line(next_host_++, key, measured(64, effect, random_))) + "\n";
        tree_.add(File(name, text));
        return tree_.path(name);
    }
    std::string file(const std::string& name, const std::string& text) {
        tree_.add(File(name, text));
        return tree_.path(name);
    }

    TempTree tree_{};
    Random random_{1};
    unsigned next_host_ = 1;
};

TEST_F(FleetCommand, ShowsALineOfJsonPerRowWithTheKeysOfTheContract) {
    const Ran ran = run({"show", "--json", hosts("a", 5, -0.01), hosts("b", 3, -0.01)});
    ASSERT_EQ(ran.code, kOk) << ran.err;
    ASSERT_THAT(lines_of(ran.out), SizeIs(1));
    EXPECT_THAT(ran.out, StartsWith(R"({"machine":{"arch":"x86_64","vendor":"AuthenticAMD",)"));
    const json row = json::parse(ran.out);
    EXPECT_THAT(row, SizeIs(15));
    for (const auto& [key, value] : std::map<std::string, json>{{"kernel", "6.12 cpu smt cache numa system"},
                                                                {"class", "kcryptd-#:#-#"},
                                                                {"reference", "cache"},
                                                                {"reference_origin", "kernel"},
                                                                {"candidate", "smt"},
                                                                {"strict", false},
                                                                {"counter", "latency"},
                                                                {"hosts", 8},
                                                                {"pairs", 8 * 64},
                                                                {"hosts_worse", 0}})
        EXPECT_EQ(row.at(key), value) << key;
    EXPECT_GT(row["log_e_better"].get<double>(), 3);
    EXPECT_LT(row["log_e_worse"].get<double>(), 0);
    EXPECT_NEAR(row["effect_percent"].get<double>(), -1, 0.5);
    EXPECT_TRUE(row.contains("hosts_better"));
}

// Hosts with pairs since a scope came in force, others without, and one under a policy's scope.
TEST_F(FleetCommand, WorthIsTheMeanOfThePairsInForce) {
    std::string text;
    const auto add = [&](const FleetKey& key, const DifferenceSums& after) {
        HostEvidence own = measured(64, -0.01, random_);
        own.after = after;
        text += text_of(host_line(next_host_++, key, own)) + "\n";
    };
    FleetKey few = fleet_key("writeback");
    FleetKey policy = fleet_key();
    policy.reference_origin = "policy";
    add(fleet_key(), {10, -1, 0.11});
    add(fleet_key(), {30, -3, 0.33});
    add(fleet_key(), {});
    add(few, {15, -1, 0.1});
    add(policy, {50, -1, 0.1});
    const std::string path = file("ledgers", text);
    const Ran ran = run({"show", "--worth", "--json", path});
    ASSERT_EQ(ran.code, kOk) << ran.err;
    ASSERT_THAT(lines_of(ran.out), SizeIs(2));
    const json row = json::parse(lines_of(ran.out)[0]);
    for (const auto& [key, value] : std::map<std::string, json>{
             {"class", "kcryptd-#:#-#"}, {"hosts", 3}, {"hosts_on_it", 2}, {"pairs", 40}})
        EXPECT_EQ(row.at(key), value) << key;
    EXPECT_NEAR(row["effect_percent"].get<double>(), 100 * std::expm1(-0.1), 1e-9);
    const double t39 = 1.96 + (1.96 * 1.96 * 1.96 + 1.96) / (4 * 39);
    const double half = t39 * std::sqrt((0.44 - 0.4) / 39 / 40);
    EXPECT_NEAR(row["interval_percent"][0].get<double>(), 100 * std::expm1(-0.1 - half), 1e-9);
    EXPECT_NEAR(row["interval_percent"][1].get<double>(), 100 * std::expm1(-0.1 + half), 1e-9);
    EXPECT_TRUE(json::parse(lines_of(ran.out)[1])["effect_percent"].is_null());
    const std::string table = run({"show", "--worth", path}).out;
    EXPECT_THAT(table, AllOf(HasSubstr("9.5% better (8.6 to 10)"), HasSubstr("not yet measured")));
    const std::string merged = file("merged", run({"merge", path}).out);
    EXPECT_EQ(run({"show", "--worth", "--json", merged}).out, ran.out);
    EXPECT_THAT(run({"show", "--worth", hosts("none", 3, 0)}).out, StartsWith("No host has measured"));
    EXPECT_EQ(run({"merge", "--worth", path}).code, kUsage);
}

TEST_F(FleetCommand, WhatItMergedIsItsInput) {
    const std::string ledgers = hosts("a", 30, -0.01);
    const Ran whole = run({"merge", ledgers});
    ASSERT_EQ(whole.code, kOk) << whole.err;
    const std::string merged = file("merged", whole.out);
    EXPECT_EQ(run({"merge", merged}).out, whole.out);
    EXPECT_EQ(run({"show", merged}).out, run({"show", ledgers}).out);
    EXPECT_EQ(run({"show", merged, "--json"}).out, run({"show", "--json", ledgers}).out);
    const std::string first = file("1", run({"merge", "--shard", "1/2", ledgers}).out);
    const std::string second = file("2", run({"merge", "--shard", "2/2", ledgers}).out);
    EXPECT_EQ(json::parse(run({"show", "--json", first, second}).out)["hosts"], 30);
    const Ran overlap = run({"merge", first, merged});
    EXPECT_EQ(overlap.code, kFailure);
    EXPECT_THAT(overlap.err, HasSubstr("merged:1: its shard 1/1 overlaps"));
    EXPECT_EQ(overlap.out, run({"merge", first}).out);
}

TEST_F(FleetCommand, NamesFileAndLineOfEachBadLineAndMergesTheRest) {
    const std::string good = hosts("good", 3, 0);
    const std::string line = text_of(host_line(77, fleet_key(), {}));
    const std::string bad = file("bad", "\n{\"v\":2}\nnonsense\n  \n" + std::string(kMostLine + 1, 'x') +
                                            "\n" + line.substr(0, 9) + '\0' + line + "\n\r\n" + line);
    const Ran ran = run({"show", "--json", good, bad, tree_.path("absent")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_EQ(json::parse(ran.out)["hosts"], 4) << "the last line has no line feed";
    EXPECT_THAT(lines_of(ran.err),
                testing::ElementsAre("wq-tunectl: " + bad + ":2: version 2; this program reads 1",
                                     "wq-tunectl: " + bad + ":3: no JSON object, or cut off",
                                     "wq-tunectl: " + bad + ":5: longer than 65536 bytes",
                                     "wq-tunectl: " + bad + ":6: no JSON object, or cut off",
                                     AllOf(StartsWith("wq-tunectl: "), HasSubstr("absent: No such file"))));
    // At most twenty of them.
    std::string text;
    for (int i = 0; i < 100; i++) text += "nonsense\n";
    const Ran many = run({"show", file("many", text), good, tree_.path("absent")});
    EXPECT_EQ(many.code, kFailure);
    EXPECT_THAT(lines_of(many.err), SizeIs(21));
    EXPECT_THAT(many.err, HasSubstr("81 more messages like these\n"));
    for (const char* action : {"show", "merge", "policy"}) {
        const Ran nothing = run({action, tree_.path("absent")});
        EXPECT_EQ(nothing.code, kFailure) << action;
        EXPECT_EQ(nothing.out, "") << action;
    }
    EXPECT_EQ(run({"show", file("empty", "")}).code, kOk);
}

TEST_F(FleetCommand, ReadsDirectoriesAndPipes) {
    hosts("ledgers/one", 2, 0);
    hosts("ledgers/two", 3, 0);
    hosts("ledgers/.hidden", 1, 0);
    EXPECT_EQ(json::parse(run({"show", "--json", tree_.path("ledgers")}).out)["hosts"], 5);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const std::string line = text_of(host_line(1, fleet_key(), {})) + "\n";
    ASSERT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ::close(ends[1]);
    const std::string older = file("older", text_of(host_line(1, fleet_key(), {}, kFleetTime - 1)));
    const Ran ran = run({"merge", older, "/proc/self/fd/" + std::to_string(ends[0])});
    ::close(ends[0]);
    EXPECT_EQ(ran.code, kOk) << ran.err;
    EXPECT_EQ(json::parse(ran.out)["at"], kFleetTime);
}

TEST(FleetText, WritesLargeEvidenceAsPowersOfTen) {
    for (const auto& [log, text] :
         std::vector<std::pair<double, const char*>>{{0, "1"},
                                                     {std::log(31.4), "31.4"},
                                                     {std::log(999), "999"},
                                                     {std::log(1000), "1.0e+3"},
                                                     {std::log(1234), "1.2e+3"},
                                                     {9, "8.1e+3"},
                                                     {-9, "1.2e-4"},
                                                     {1000 * std::log(10), "1.0e+1000"},
                                                     {-1000 * std::log(10), "1.0e-1000"}})
        EXPECT_EQ(e_text(log), text);
    Pooled p;
    EXPECT_EQ(spread_text(p), "0.00%; 0 better, 0 worse");
    p.hosts = 12;
    p.better.hosts = p.worse.hosts = 3;
    EXPECT_EQ(spread_text(p), "MIXED: 0.00%; 3 better, 3 worse");
    EXPECT_EQ(machine_text(fleet_key().machine),
              "AMD [EPYC] 9654 96-Core Processor, x86_64, 192 cores, 8 per LLC, 2 packages");
    p.forget_hosts();
    EXPECT_EQ(spread_text(p), "not known");
}

HostFacts facts() {
    HostFacts out;
    out.arch = "x86_64";
    out.cpu_vendor = "AuthenticAMD";
    out.cpu_models = {"AMD [EPYC] 9654 96-Core Processor"};
    out.llc_cores = 8;
    out.cores = 192;
    out.kernel = "6.12.57+deb13-amd64";
    return out;
}

// What the policy TEXT, which must be valid, without warnings, and expire, plans for NAME on HOST, on a
// machine where each scope finer than `cache`, the kernel's, makes other pods: "set smt strict", "leave",
// "unmanaged".
std::string planned(const std::string& text, const std::string& name, const HostFacts& host = facts()) {
    const TempTree tree{File("drop-in.toml", text)};
    PolicyErrors warnings;
    const auto policy = load_policy(
        {tree.path("drop-in.toml")}, [&] { return host; }, &warnings);
    EXPECT_TRUE(policy) << policy.error()[0].underlined() << "\n" << text;
    EXPECT_TRUE(warnings.empty()) << text;
    EXPECT_EQ(policy->mode, Mode::tune);
    for (const WorkqueueRule& rule : policy->rules) EXPECT_NE(rule.expires, "") << rule.match[0];
    const Topology topology = test::machine({.sockets = 2, .cores = 12, .threads = 2});
    const Workqueue moves = test::default_target(topology, Scope::cache);
    const Workqueue target = name == moves.name ? moves : test::unbound(topology, Scope::cache, name);
    const PlanLine line =
        make_plan({topology, test::kernel_612(), *policy, {target, moves}, "", 8, {.swap = {"254:1"}}}).at(0);
    if (line.finding == Finding::leave) return "leave";
    if (line.finding == Finding::unmanaged) return "unmanaged";
    return std::string(line.finding == Finding::change ? "set " : "none ") +
           std::string(line.planned ? name_of(*line.planned) : "?") + (line.strict == true ? " strict" : "");
}

TEST_F(FleetCommand, APolicyDecidesEverything) {
    struct Measured {
        std::string kind;
        double effect;  // below 0 is better
        std::string candidate = "smt";
    };
    const struct {
        const char* what;
        std::vector<Measured> measured;
        std::string crypt, writeback, at_default;
    } rows[] = {
        {"nothing", {{"kcryptd-#:#-#", 0}}, "leave", "leave", "unmanaged"},
        {"a gain", {{"kcryptd-#:#-#", -0.02}}, "set smt", "leave", "unmanaged"},
        {"a loss", {{"writeback", 0.02}}, "leave", "leave", "unmanaged"},
        {"strict", {{"writeback", -0.02, "smt strict"}}, "leave", "set smt strict", "unmanaged"},
        {"a gain of @default", {{"@default", -0.02}}, "leave", "leave", "set smt"},
        {"and a loss by the same scope",
         {{"@default", -0.02}, {"writeback", 0.02}},
         "leave",
         "set cache",
         "set smt"},
        {"and a loss by another scope",
         {{"@default", -0.02}, {"writeback", 0.02, "cpu"}},
         "leave",
         "set cache",
         "set smt"},
        {"disks lose", {{"@default", -0.02}, {"kcryptd-#:#-#", 0.02}}, "set cache", "leave", "set smt"},
        {"a loss of @default", {{"@default", 0.02}, {"writeback", 0.02}}, "leave", "leave", "unmanaged"},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        std::vector<std::string> words = {"policy"};
        for (const Measured& one : row.measured) {
            FleetKey key = fleet_key(one.kind);
            key.candidate = one.candidate;
            key.strict = one.candidate.ends_with(" strict");
            words.push_back(hosts(std::to_string(words.size()), 40, one.effect, key));
        }
        const Ran ran = run(words);
        EXPECT_EQ(ran.code, kOk) << ran.err;
        EXPECT_EQ(planned(ran.out, "kcryptd-254:0-1"), row.crypt);
        EXPECT_EQ(planned(ran.out, "kcryptd-254:1-0"), row.crypt == "set cache" ? row.crypt : "leave");
        EXPECT_EQ(planned(ran.out, "writeback"), row.writeback);
        EXPECT_EQ(planned(ran.out, "@default"), row.at_default);
    }
}

TEST_F(FleetCommand, WritesAPolicyForTheKindsThatWereMeasured) {
    FleetKey other = fleet_key("nvme#");
    other.machine.model = "Other";
    const Ran ran = run({"policy", hosts("a", 40, -0.02), hosts("b", 40, -0.02, other)});
    EXPECT_EQ(planned(ran.out, "kcryptd-254:0-1"), "set smt");
    EXPECT_EQ(planned(ran.out, "nvme3"), "leave") << "of another kind";
    HostFacts elsewhere = facts();
    elsewhere.cpu_models = {"Other"};
    EXPECT_EQ(planned(ran.out, "nvme3", elsewhere), "set smt");
    EXPECT_EQ(planned(ran.out, "kcryptd-254:0-1", elsewhere), "leave");
    elsewhere = facts();
    elsewhere.kernel = "6.13.1";
    EXPECT_EQ(planned(ran.out, "kcryptd-254:0-1", elsewhere), "leave");
    EXPECT_THAT(ran.out, HasSubstr("\n# cache -> smt, latency, better: E "));
    EXPECT_THAT(ran.out, HasSubstr("of 40 hosts, effect 1.9% better"));
    EXPECT_THAT(ran.out, HasSubstr(R"(cpu_model = "AMD \\[EPYC] 9654 96-Core Processor")"));
}

// The way to roll out: all hosts observe, a canary compares, then all get what it found.
TEST_F(FleetCommand, TheCanaryGoesOnComparingWhatThePolicyLeaves) {
    const std::string before = SOURCE_DIR "/conf/examples/05-canary.toml";
    const std::string after = file("50-fleet.toml", run({"policy", hosts("a", 40, -0.02)}).out);
    unsigned canaries = 0;
    for (int i = 0; i < 400; i++) {
        HostFacts host = facts();
        host.machine_id = fmt::format("{:032x}", i);
        const Policy first = load_policy({before}, [&] { return host; }).value();
        const Policy then = load_policy({before, after}, [&] { return host; }).value();
        const bool compares = first.mode == Mode::tune;
        canaries += compares ? 1 : 0;
        EXPECT_EQ(then.mode, Mode::tune);
        EXPECT_EQ(then.rule_for("kcryptd-254:0-1")->wish.text(), "smt");
        EXPECT_EQ(then.rule_for("writeback")->wish.text(), compares ? "auto" : "leave");
        EXPECT_EQ(then.default_scope.manage, compares);
    }
    EXPECT_NEAR(canaries, 20, 15);
}

// Any program that can add can produce merged lines with the keys of the contract (design, `fleet merge`).
TEST_F(FleetCommand, MergedLinesOfTheContractCountButMakeNoRule) {
    const std::string ledgers = hosts("a", 40, -0.02);
    const json whole = json::parse(run({"merge", ledgers}).out);
    json contract;
    for (const char* key :
         {"v",         "at",      "hosts",     "machine",          "kernel",    "topology",
          "scheduler", "class",   "reference", "reference_origin", "candidate", "partitions",
          "strict",    "counter", "tolerance", "window",           "n",         "pairs",
          "better",    "worse",   "sum",       "squares",          "shards"})
        contract[key] = whole.at(key);
    const std::string merged = file("merged", contract.dump() + "\n");
    const Ran shown = run({"show", "--json", merged});
    EXPECT_EQ(shown.code, kOk);
    EXPECT_THAT(lines_of(shown.err),
                testing::ElementsAre(StartsWith("wq-tunectl: " + merged + ":1: it lacks \"guard\"")));
    json row = json::parse(run({"show", "--json", ledgers}).out);
    row["hosts_better"] = row["hosts_worse"] = nullptr;
    EXPECT_EQ(json::parse(shown.out), row);
    json again = json::parse(run({"merge", merged}).out);
    EXPECT_EQ(again.at("guard"), true);
    again.erase("guard");
    EXPECT_EQ(again, contract);
    EXPECT_EQ(planned(run({"policy", ledgers}).out, "kcryptd-254:0-1"), "set smt");
    const std::string policy = run({"policy", merged}).out;
    EXPECT_EQ(planned(policy, "kcryptd-254:0-1"), "leave");
    EXPECT_THAT(policy, HasSubstr("0 rules passed"));
}

TEST_F(FleetCommand, TellsWhatWasLearnedAgainstAPolicy) {
    FleetKey step = fleet_key();
    step.reference_origin = "policy";
    const std::string policy = run({"policy", hosts("a", 40, -0.02, step)}).out;
    EXPECT_THAT(policy,
                HasSubstr("# Against what a policy had set, not against the kernel's own setting:\n"));
    EXPECT_THAT(policy, HasSubstr("\nevidence = \"cache (policy) -> smt, latency, better"));
    step.reference = "smt";
    step.candidate = "cpu";
    const std::string steps = run({"policy", hosts("b", 40, -0.02), hosts("c", 40, -0.02, step)}).out;
    EXPECT_THAT(steps, testing::Not(HasSubstr("Against what a policy")));
    EXPECT_EQ(planned(steps, "kcryptd-254:0-1"), "set cpu");
    EXPECT_THAT(steps, HasSubstr("\nevidence = \"smt (policy) -> cpu, latency, better"));
}

TEST_F(FleetCommand, AnUnknownVendorIsNoConditionAndHostileAndTheLargestNamesStayNames) {
    FleetKey odd = fleet_key("\"]\\ # *?[");
    odd.machine.vendor.clear();
    odd.machine.model = "\" ]\\ \u00e9";
    FleetKey large = fleet_key(std::string(29, '[') + "#");
    large.machine = {std::string(64, 'a'), std::string(64, '"'), std::string(128, '['),
                     UINT32_MAX,           UINT32_MAX,           UINT32_MAX};
    large.kernel = "4294967295.4294967295";
    const std::string policy = run({"policy", hosts("a", 40, -0.02, odd), hosts("b", 40, -0.02, large)}).out;
    EXPECT_THAT(policy, HasSubstr("# cpu_vendor is not known, so there is no condition on it\n"));
    HostFacts here = facts();
    here.cpu_models = {odd.machine.model};
    EXPECT_EQ(planned(policy, "\"]\\ 1 *?[", here), "set smt");
    here.arch = large.machine.arch;
    here.cpu_vendor = large.machine.vendor;
    here.cpu_models = {large.machine.model};
    here.cores = here.llc_cores = UINT32_MAX;
    here.kernel = large.kernel;
    EXPECT_EQ(planned(policy, std::string(29, '[') + "7", here), "set smt");
}

// A [[host]] table without one of these conditions would also match hosts that were not measured.
TEST_F(FleetCommand, WhatNoConditionsCanNameIsNotARule) {
    for (void (*change)(FleetKey & key) : std::initializer_list<void (*)(FleetKey&)>{
             [](auto& key) { key.machine = {}; },
             [](auto& key) { key.machine.arch.clear(); },
             [](auto& key) { key.machine.model.clear(); },
             [](auto& key) { key.machine.cores.reset(); },
             [](auto& key) { key.machine.llc_cores.reset(); },
             [](auto& key) { key.kernel = "6"; },
             [](auto& key) { key.kernel = "6.12-rc1 smt"; },
             [](auto& key) { key.kernel = "6.1-6.18 smt"; },
             [](auto& key) { key.kernel = "6.12.1"; },
             [](auto& key) { key.kernel = ""; },
             [](auto& key) { key.candidate = "moon"; },
         }) {
        FleetKey key = fleet_key();
        change(key);
        const std::string policy = run({"policy", hosts("a", 40, -0.02, key)}).out;
        EXPECT_EQ(planned(policy, "kcryptd-254:0-1"), "leave") << policy;
        EXPECT_THAT(policy, AllOf(HasSubstr("0 rules passed"), testing::Not(HasSubstr("[[host]]")),
                                  HasSubstr("\n# Enough evidence, but"), HasSubstr("latency, better: E ")));
    }
}

}  // namespace
}  // namespace wq::ctl
