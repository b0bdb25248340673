// SPDX-License-Identifier: LGPL-2.1-or-later
// On random hosts `plan`, `plan --experiments`, `explain`, `status` and the daemon say the same of a target.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/topology_source.h"
#include "fake_log.h"
#include "fake_machine.h"
#include "service/restorer.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

constexpr const char* kUnlessNamed = "a rule names";

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string text_of(const json& value) {
    return value.is_string() ? value.get<std::string>() : "";
}

struct Cpus {
    explicit Cpus(const test::CpuTree& shape)
        : tree{test::cpu_tree(shape)}, topology(read_topology("live", tree.root()).value()) {}
    test::TempTree tree;
    Topology topology;
};

// Replaces all files but those of the CPUs by random ones. The same SEED gives the same files.
struct RandomHost {
    RandomHost(unsigned seed, Cpus& cpus)
        : random_(seed), tree_(cpus.tree), cpus_(static_cast<unsigned>(cpus.topology.present.count())) {
        for (const char* folder :
             {"etc", "proc", "run", "sys/class", "sys/devices/virtual", "sys/kernel", "sys/module", "var"})
            tree_.remove(folder);
        write_kernel();
        write_policy();
        write_circumstances();
    }
    // Whether a rule names the target NAME: "nvme-2" or "nvme-*".
    [[nodiscard]] bool names(const std::string& name) const {
        if (name == kDefaultTarget) return has(policy, "[default_scope]");
        return has(policy, "'" + name + "'") || has(policy, "'" + name.substr(0, name.find('-')) + "-*'");
    }
    unsigned pick(std::size_t n) { return static_cast<unsigned>(random_() % n); }
    std::string policy, circumstances;
    bool one_in(unsigned n) { return pick(n) == 0; }
    std::string one_of(const std::vector<const char*>& words) { return words[pick(words.size())]; }
    void write_kernel() {
        const std::string shard = one_of({"", "1", "4"});
        const std::string start = one_of({"cache", shard.empty() ? "system" : "cache_shard"});
        const auto mask = [](unsigned cpus) { return fmt::format("{:x}", (1U << cpus) - 1); };
        std::vector<test::Entry> all;
        for (const char* name :
             {"kcryptd-254:0-1", "kcryptd-254:1-0", "nvme-2", "nvme-10", "writeback", "ordered", "single"}) {
            if (one_in(6)) continue;
            const std::string own = one_of({"cpu", "smt", "cache", "numa", "system"});
            all.push_back(test::workqueue(name, {.scope = one_in(4) ? own : "default (" + start + ")",
                                                 .cpumask = mask(one_in(4) ? (cpus_ + 1) / 2 : cpus_),
                                                 .max_active = has("single ordered", name) ? "1" : "512",
                                                 .max_active_mode = name[0] == 'o' ? 0444U : 0644U}));
        }
        for (const auto& entry : test::kernel_tree(all, start, shard, mask(cpus_))) tree_.add(entry);
    }
    std::string wish() {
        const std::string scope = one_of({"cpu", "cache_shard", "cache", "numa", "system"});
        const std::string wish = one_of({"auto", "auto", "candidates", "plan", "", "leave", "leave"});
        if (wish == "candidates") return "scope = 'auto'\ncandidates = ['" + scope + "', 'smt']\n";
        const bool hold = (wish.empty() || wish == "plan") && one_in(3);
        return fmt::format("scope = '{}'\n{}", wish.empty() ? scope : wish, hold ? "hold = true\n" : "");
    }
    // The rule with "*" comes last, so that each of the others can decide.
    void write_policy() {
        policy = fmt::format("[daemon]\nmode = '{}'\n[shard]\nsize = {}\n", one_in(8) ? "observe" : "tune",
                             one_of({"1", "2", "8"}));
        if (one_in(2))
            policy += fmt::format("[default_scope]\nmanage = {}\n{}", one_in(4) ? "false" : "true", wish());
        const auto add = [&](const std::string& match) {
            policy += "[[workqueue]]\nmatch = " + match + "\n" + wish();
        };
        for (unsigned i = pick(4); i > 0; i--)
            add(one_of({"'kcryptd-*'", "'nvme-*'", "'nvme-2'", "['writeback', 'kcryptd-254:1-0']"}));
        if (!one_in(6)) add(one_of({"'*'", "'*'", "['*', 'nvme-10']"}));
        tree_.write(one_of({"etc/wq-tuned/wq-tuned.toml", "etc/wq-tuned/wq-tuned.toml.d/50-x.toml"}), policy);
    }
    void write_circumstances() {
        const auto perhaps = [&](unsigned n, const std::string& path, const std::string& text) {
            if (!one_in(n)) return;
            tree_.write(path, text);
            circumstances += path.substr(path.rfind('/') + 1) + " " + text;
        };
        tree_.write("sys/devices/system/cpu/nohz_full", "\n");
        tree_.write("sys/class/block/dm-1/dev", "254:1\n");
        tree_.write("sys/dev/block/254:1/slaves/dm-0/dev", "254:0\n");
        tree_.write("sys/class/power_supply/BAT0/type", "Battery\n");
        tree_.write("proc/uptime", "90000.00 80000.00\n");
        perhaps(10, "sys/devices/system/cpu/nohz_full", "1\n");
        perhaps(10, "sys/kernel/realtime", "1\n");
        perhaps(3, "proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 1024 0 -2\n");
        perhaps(6, "proc/cmdline", "workqueue.default_affinity_scope=cache\n");
        perhaps(10, "proc/cmdline", "quiet wq_tuned=off\n");
        perhaps(10, "etc/wq-tuned/disabled", "");
        perhaps(8, "var/lib/wq-tuned/paused", "");
        perhaps(6, "sys/class/power_supply/BAT0/status", "Discharging\n");
        perhaps(6, "proc/pressure/memory", "some avg10=3.00 avg60=0.00 avg300=0.00 total=1\n");
        perhaps(6, "proc/uptime", "70.00 60.00\n");
    }
    std::mt19937 random_;
    test::TempTree& tree_;
    unsigned cpus_;
};

// The daemon's engine: it looked once, and the ledger is empty.
struct Daemon {
    Daemon(const Options& options, const Topology& topology)
        : paths{options.root},
          parts({files, store, log, [&] { return topology; }, [](const auto&) { return false; }, verdicts,
                 wall_clock, &ledger},
                kernel_of(options)),
          off(why_switched_off(parts.targets.kernel(), paths)) {
        parts.targets.name_only(read_named_only(paths));
        parts.targets.observe(off);
        parts.engine.set_policy(load_installed_policy(options.root, {}, facts_of(options)).value());
        parts.engine.look();
    }
    Paths paths;
    WorkqueueFs files{paths};
    OwnedStore store{paths.owned()};
    test::FakeLog log;
    VerdictStore verdicts{paths.verdicts()};
    Ledger ledger;
    test::TargetParts parts;
    std::string off;  // the kill switch that is on
};

// Returns what COMMAND, with ARGUMENTS, prints.
template <class Command, class... Arguments>
std::string said_by(Command command, const Options& options, const Arguments&... arguments) {
    testing::internal::CaptureStdout();
    const int code = command(options, arguments...);
    std::string out = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(code == kOk || code == kNoDaemon) << out;
    return out;
}

// PLAN, EXPERIMENTS, STATUS: the target's objects. NAMED: a rule names it.
void check_target(const json& plan, const json& experiments, const json& status, const Target& daemon,
                  bool named) {
    const std::string action = plan["action"], reason = plan["reason"];
    const json& compared = plan["would_compare"];
    const bool skipped = action == "skip";
    EXPECT_TRUE(has("compare set none skip", action)) << action;
    EXPECT_FALSE(compared.empty() ? action == "compare" : skipped) << action;
    EXPECT_FALSE(named && has(reason, kUnlessNamed)) << reason;
    EXPECT_EQ(experiments["candidates"], compared);
    EXPECT_EQ(experiments["reason"] == "", !compared.empty());
    EXPECT_EQ(skipped ? text_of(experiments["reason"]) : reason, reason);
    EXPECT_EQ(status["reason"], reason);
    EXPECT_EQ(status["planned"], plan["planned"]);
    const std::string state = text_of(status["state"]);  // null without a daemon if the target would wait
    EXPECT_TRUE(skipped ? has("unmanaged leave unsupported", state) && !state.empty()
                        : state == (action == "none" ? "as-planned" : ""))
        << state;
    EXPECT_EQ(daemon.plan.reason, reason);
    EXPECT_EQ(name_of(daemon.plan.action), action);
    EXPECT_EQ(skipped ? daemon.reason : reason, reason);
    const auto& next = daemon.step.next;
    EXPECT_EQ(next ? next->candidate.name() : "", compared.empty() ? "" : text_of(compared[0]));
}

void check(RandomHost& host, const Cpus& cpus, bool with_text) {
    Options options;
    options.json = true;
    options.root = cpus.tree.root();
    const json document = json::parse(said_by(plan, options, false));
    const json& plans = document["targets"];
    const json experiments = json::parse(said_by(plan, options, true));
    const json told = json::parse(said_by(status, options, ""));
    const Daemon daemon(options, cpus.topology);
    ASSERT_EQ(experiments["targets"].size(), plans.size());
    std::map<std::string, json> states;
    for (const json& each : told["targets"]) states[each["name"]] = each;
    std::size_t compared = 0, unless_named = 0;
    for (std::size_t i = 0; i < plans.size(); i++) {
        const std::string name = plans[i]["name"];
        SCOPED_TRACE(name);
        check_target(plans[i], experiments["targets"][i], states[name], daemon.parts.targets.all().at(name),
                     host.names(name));
        compared += plans[i]["would_compare"].empty() ? 0 : 1;
        unless_named += has(plans[i]["reason"], kUnlessNamed) ? 1 : 0;
    }
    const std::string held = text_of(experiments["held_back"]);
    EXPECT_EQ(document["held_back"], experiments["held_back"]);
    const std::string absent = told["daemon"]["reason"];
    Conditions all = read_conditions(daemon.paths, daemon.parts.targets.kernel(),
                                     daemon.parts.targets.policy(), daemon.off);
    all.pods_unknown = daemon.parts.targets.snapshot().pods_unknown;
    EXPECT_EQ(why_no_slot(all), held) << "as Experiment::why_no_slot()";
    EXPECT_EQ(told["daemon"]["mode"], experiments["mode"]);
    EXPECT_TRUE(has(absent, daemon.off)) << absent;
    EXPECT_EQ(has(absent, kPaused), is_paused(daemon.paths)) << absent;
    if (!with_text) return;
    const std::size_t one = host.pick(plans.size());
    const std::string name = plans[one]["name"];
    const json explained = json::parse(said_by(explain, options, name));
    EXPECT_EQ(explained["experiments"], experiments["targets"][one]);
    EXPECT_EQ(explained["held_back"], experiments["held_back"]);
    for (const char* key : {"planned", "action", "reason", "rule", "would_compare"})
        EXPECT_EQ(explained[key], plans[one][key]) << key;
    options.json = false;
    const std::string text = said_by(explain, options, name);
    const std::string why_not = text_of(experiments["targets"][one]["reason"]);
    EXPECT_EQ(has(text, "  compared   nothing: " + why_not), !why_not.empty()) << text;
    EXPECT_EQ(has(text, "  held back  " + held), !held.empty()) << text;
    const std::string counted = plural(plans.size(), "target") + " would be compared";
    for (const std::string& table : {said_by(plan, options, false), said_by(plan, options, true)}) {
        EXPECT_EQ(has(table, fmt::format("{} of {}", compared, counted)), compared > 0) << table;
        EXPECT_EQ(has(table, kUnlessNamed), unless_named > 0) << table;
        const std::string off = "observing: ";
        const std::string remark = held.starts_with(off)
                                       ? "Nothing is written or compared now: " + held.substr(off.size())
                                       : "No comparison begins now: " + held;
        EXPECT_EQ(has(table, remark), !held.empty()) << table;
    }
}

TEST(OneAnswer, IsGivenByAllCommandsAndTheDaemon) {
    std::vector<std::unique_ptr<Cpus>> machines;
    using Shape = test::CpuTree;
    for (const Shape& shape :
         {Shape{.cores = 2, .threads = 2}, Shape{.sockets = 2, .cores = 2}, Shape{.cores = 4, .llcs = 2},
          Shape{.sockets = 4, .cores = 1, .extra_possible = 2}, Shape{.cores = 4, .nodes = 2},
          Shape{.cores = 3, .offline = "2"}})
        machines.push_back(std::make_unique<Cpus>(shape));
    for (unsigned seed = 0; seed < 80 && !HasFailure(); seed++) {
        const std::size_t i = seed % machines.size();
        RandomHost host(seed, *machines[i]);
        SCOPED_TRACE(fmt::format("seed {}: {}\n{}", seed, host.circumstances, host.policy));
        check(host, *machines[i], seed % 5 == 0);
    }
}

}  // namespace
}  // namespace wq::ctl
