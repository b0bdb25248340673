// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>

#include "bpf/work_monitor.h"
#include "bpf/work_profile.h"
#include "ctl/command.h"
#include "ctl/commands/judge_command.h"
#include "ctl/fleet/fleet_command.h"
#include "ctl/fleet/history_ledger.h"
#include "ctl/lab/ab_command.h"
#include "ctl/machine.h"
#include "ctl/observe/diagnosis.h"
#include "ctl/observe/dump_command.h"
#include "ctl/observe/isolation_command.h"
#include "ctl/observe/top_command.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"

namespace wq::ctl {
namespace {

// Options and arguments of a simple command.
struct Given {
    Options options;
    std::string target;
    std::string scope;
    std::string output;
    std::vector<std::string> files;
    bool all = false;
    bool export_policy = false;
    bool experiments = false;
    bool isolation = false;
    bool ledger = false;
    bool print = false;
    bool verbose = false;
    double seconds = 5;
};
using GivenPtr = std::shared_ptr<Given>;

// Returns a function that calls RUN with GIVEN after parsing.
template <class F>
CommandRun later(const GivenPtr& given, const Invocation& invocation, F run) {
    return [given, &invocation, run] {
        given->options.root = invocation.root;
        return run(*given);
    };
}

void add_json(CLI::App& command, Given& g) {
    command.add_flag("--json", g.options.json, kJsonHelp);
}

void add_config(CLI::App& command, Given& g) {
    command.add_option("--config", g.options.config, "Policy file instead of the installed ones")
        ->type_name(word::kFile)
        ->check(not_empty);
}

// Returns why WORD does not name a source of a topology; "" if it does.
std::string source_error(const std::string& word) {
    if (word == "live") return "";
    for (const std::string_view kind : {"fsroot:", "xml:", "synthetic:"})
        if (word.starts_with(kind) && word.size() > kind.size()) return "";
    return fmt::format("'{}' is not live, fsroot:DIR, xml:FILE or synthetic:DESC", word);
}

void add_source(CLI::App& command, Given& g) {
    command.add_option("--topology", g.options.topology, "live | fsroot:DIR | xml:FILE | synthetic:DESC")
        ->type_name(word::kSource)
        ->check(source_error);
    take_number(command.add_option("--shard-size", g.options.shard_size, "Cores per shard"), 1U,
                kMaxShardSize);
}

void add_kernel_scopes(CLI::App& command, Given& g) {
    const auto take = [&g](const std::string& list) {
        const auto scopes = parse_scopes(list);
        if (!scopes) throw CLI::ValidationError("--kernel-scopes", scopes.error().text);
        g.options.kernel_scopes = *scopes;
    };
    command.add_option_function<std::string>("--kernel-scopes", take, "Plan for a kernel that has these")
        ->type_name(word::kScopes);
}

CLI::Option* add_target(CLI::App& command, Given& g) {
    return command.add_option("TARGET", g.target, "A workqueue's name, or @default")
        ->type_name(word::kTarget)
        ->check(not_empty);
}

int watch_isolated(const Given& given) {
    if (!given.options.root.empty())
        throw CLI::ValidationError("status --isolation watches the running kernel: no --root");
    const auto statistics = make_bpf_monitor(false);
    const auto profile = make_bpf_profile();
    return isolation({given.seconds, given.options.json}, {Paths{}, *statistics, *profile});
}

CommandRun set_up_status(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    auto* target = add_target(command, *given);
    command.add_flag("-v,--verbose", given->verbose, "Also the features of the kernel");
    add_json(command, *given);
    add_config(command, *given);
    auto* isolation =
        command.add_flag("--isolation", given->isolation, "Watch isolated CPUs: the work there, by origin");
    isolation->excludes("--config")->excludes(target);
    add_look_seconds(command, given->seconds)->needs(isolation);
    return later(given, invocation, [](const Given& g) {
        return g.isolation ? watch_isolated(g) : status(g.options, g.target, g.verbose);
    });
}

CommandRun set_up_topology(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    add_source(command, *given);
    add_json(command, *given);
    add_config(command, *given);
    auto* save =
        command.add_option("--save", given->options.save, "Also write a tree for --topology fsroot:DIR");
    save->type_name(word::kDirectory)->check(not_empty);
    return later(given, invocation, [save](const Given& g) {
        if (!g.options.save.empty() && !tree_of(g.options))
            throw CLI::ValidationError(save->get_name(), "only live and fsroot:DIR have a tree");
        return topology(g.options);
    });
}

CommandRun set_up_plan(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    auto* boot =
        command.add_flag("--boot", given->options.boot, "Boot options that the plan would need, and why");
    command
        .add_flag("--experiments", given->experiments,
                  "What would be compared with what, and the most that it can cost")
        ->excludes(boot);
    add_source(command, *given);
    add_kernel_scopes(command, *given);
    add_json(command, *given);
    add_config(command, *given);
    return later(given, invocation, [](const Given& g) {
        if (g.experiments) return plan_experiments(g.options);
        return g.options.boot ? plan_boot(g.options) : plan(g.options);
    });
}

CommandRun set_up_explain(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    command
        .add_option("NAME", given->target,
                    "A target, another workqueue, a kworker, a block device or a mount point")
        ->type_name(word::kTarget)
        ->required()
        ->check(not_empty);
    add_source(command, *given);
    add_kernel_scopes(command, *given);
    add_json(command, *given);
    add_config(command, *given);
    return later(given, invocation, [](const Given& g) { return explain(g.options, g.target); });
}

CommandRun set_up_history(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    auto* target = add_target(command, *given);
    add_json(command, *given);
    command
        .add_flag("--export-policy", given->export_policy,
                  "The verdicts as a policy for machines of this kind")
        ->excludes("--json")
        ->excludes(target);
    command.add_flag("--ledger", given->ledger, "All comparisons as lines of JSON, for fleet merge")
        ->excludes("--json")
        ->excludes("--export-policy")
        ->excludes(target);
    return later(given, invocation, [](const Given& g) {
        if (g.ledger) return history_ledger(g.options);
        return g.export_policy ? export_policy(g.options) : history(g.options, g.target);
    });
}

CommandRun set_up_report(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    command.add_option("-o,--output", given->output, "The file to write; stdout if not given, or for -")
        ->type_name(word::kFile)
        ->check(not_empty);
    add_source(command, *given);
    add_kernel_scopes(command, *given);
    add_config(command, *given);
    return later(given, invocation, [](const Given& g) {
        if (g.output.empty() && is_terminal())
            throw CLI::ValidationError("report", "a terminal cannot show the page: name a file with -o");
        return report(g.options, g.output.empty() ? "-" : g.output);
    });
}

CommandRun set_up_check(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    command.add_option("FILE", given->files, "Policy files, main file first; the installed ones if none")
        ->type_name(word::kFile);
    add_json(command, *given);
    return later(given, invocation, [](const Given& g) { return check(g.options, g.files); });
}

CommandRun set_up_cat_config(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    add_json(command, *given);
    add_config(command, *given);
    return later(given, invocation, [](const Given& g) { return cat_config(g.options); });
}

// Throws a ValidationError of OPTION unless WORD is a scope.
void check_scope(const char* option, const std::string& word) {
    if (scope_named(word)) return;
    std::vector<std::string_view> names;
    for (const Scope scope : kAllScopes) names.push_back(name_of(scope));
    throw CLI::ValidationError(option, fmt::format("'{}' is not one of {}", word, fmt::join(names, ", ")));
}

CommandRun set_up_pin(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    add_target(command, *given)->required();
    command.add_option("SCOPE", given->scope, "The scope to hold")->type_name(word::kScope)->required();
    return later(given, invocation, [](const Given& g) {
        check_scope("SCOPE", g.scope);
        return order(g.options, "Pin", {g.target, g.scope});
    });
}

CommandRun set_up_unpin(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    add_target(command, *given)->required();
    return later(given, invocation, [](const Given& g) { return order(g.options, "Unpin", {g.target}); });
}

// To revert all targets, --all is required, so that a script with an unset variable does not do it.
CommandRun set_up_revert(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    auto* target = add_target(command, *given);
    command.add_flag("--all", given->all, "All targets")->excludes(target);
    return later(given, invocation, [](const Given& g) {
        if (g.target.empty() && !g.all) throw CLI::ValidationError("revert", "name a target, or give --all");
        return order(g.options, "Revert", {g.target});  // "": all
    });
}

CommandRun set_up_compare(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    add_target(command, *given)->required();
    command.add_option("--with", given->scope, "The scope to compare; default the next candidate")
        ->type_name(word::kScope)
        ->check(not_empty);
    add_json(command, *given);
    return later(given, invocation, [](const Given& g) {
        if (!g.scope.empty()) check_scope("--with", g.scope);
        return compare(g.options, g.target, g.scope);
    });
}

CommandRun set_up_undo(CLI::App& command, const Invocation& invocation) {
    const auto given = std::make_shared<Given>();
    command.add_flag("--print", given->print, "Print the commands and run nothing (the default)");
    return later(given, invocation, [](const Given& g) { return undo(g.options); });
}

constexpr char kPause[] = "Pause";
constexpr char kResume[] = "Resume";
constexpr char kReload[] = "Reload";

template <const char* method>
CommandRun set_up_order(CLI::App& /*command*/, const Invocation& invocation) {
    return later(std::make_shared<Given>(), invocation,
                 [](const Given& g) { return order(g.options, method); });
}

constexpr const char* kLook = "Look";
constexpr const char* kControl = "Control";
constexpr const char* kMeasure = "Measure";
constexpr const char* kFleet = "Fleet";

constexpr std::array kCommands = {
    Command{kLook, "status", "What the daemon does with each target; also without a command", set_up_status,
            true},
    Command{kLook, "plan", "What would be set, and why", set_up_plan, true},
    Command{kLook, "explain", "What a target, workqueue, kworker, device or mount is, and its plan",
            set_up_explain, true},
    Command{kLook, "topology", "LLCs, cores and shards of a machine", set_up_topology, true},
    Command{kLook, "history", "The verdicts so far, with effects and pairs", set_up_history, true},
    Command{kLook, "report", "Write verdicts, plan and topology as an HTML page", set_up_report},
    Command{kLook, "check", "Look for mistakes in a policy", set_up_check},
    Command{kLook, "cat-config", "The policy as merged on this host, and where each value came from",
            set_up_cat_config, true},
    Command{kControl, "pin", "Hold a target at a scope", set_up_pin},
    Command{kControl, "unpin", "Give a pinned or reverted target back to the policy", set_up_unpin},
    Command{kControl, "revert", "Put a target, or all, back to the baseline until unpin or a reload",
            set_up_revert},
    Command{kControl, "compare", "Compare a scope on a target now, and follow it to the verdict",
            set_up_compare},
    Command{kControl, "pause", "Begin no experiment until `resume`, also after a reboot",
            set_up_order<kPause>},
    Command{kControl, "resume", "Let experiments begin again", set_up_order<kResume>},
    Command{kControl, "reload", "Read the policy again", set_up_order<kReload>},
    Command{kControl, "undo", "Shell commands that would put everything back", set_up_undo},
    Command{kMeasure, "top", "What workqueues do, live: rates, waits, locks, functions", set_up_top},
    Command{kMeasure, "diagnose", "What keeps kworkers busy, in plain words", set_up_diagnose},
    Command{kMeasure, "dump", "The kernel's pods, worker pools and workqueues", set_up_dump, true},
    Command{kMeasure, "bench", "Is another scope worth it on this machine? On a dm-crypt device of its own",
            set_up_bench},
    Command{kMeasure, "ab",
            "Run a command under several settings in random order, and judge: ab ... -- COMMAND...",
            set_up_ab},
    Command{kMeasure, "judge", "Verdicts on recorded comparisons", set_up_judge},
    Command{kFleet, "fleet", "What the ledgers of many hosts say together: merge, show, policy", set_up_fleet,
            true},
};

}  // namespace

std::span<const Command> commands() {
    return kCommands;
}

}  // namespace wq::ctl
