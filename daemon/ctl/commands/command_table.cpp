// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "ctl/command.h"
#include "ctl/fleet/fleet.h"
#include "ctl/machine.h"
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
    bool experiments = false;
    bool ledger = false;
};

// A command with options of Given alone: ADD adds them, RUN runs it.
SetUp simple(void (*add)(CLI::App& command, Given& given), int (*run)(const Given& given)) {
    return [add, run](CLI::App& command, const Invocation& invocation) -> CommandRun {
        const auto given = std::make_shared<Given>();
        add(command, *given);
        return [run, given, &invocation] {
            given->options.root = invocation.root;
            return run(*given);
        };
    };
}

// Returns why WORD does not name a source of a topology; "" if it does.
std::string source_error(const std::string& word) {
    if (word == "live") return "";
    for (const std::string_view kind : {"fsroot:", "xml:", "synthetic:"})
        if (word.starts_with(kind) && word.size() > kind.size()) return "";
    return fmt::format("'{}' is not live, fsroot:DIR, xml:FILE or synthetic:DESC", word);
}

// Options that several commands have.
enum Shared : unsigned { kSource = 1, kKernelScopes = 2, kJson = 4, kConfig = 8 };
void add_shared(CLI::App& command, Options& options, unsigned which) {
    if ((which & kSource) != 0) {
        command.add_option("--topology", options.topology, "live | fsroot:DIR | xml:FILE | synthetic:DESC")
            ->type_name(word::kSource)
            ->check(source_error);
        take_number(command.add_option("--shard-size", options.shard_size, "Cores per shard"), 1U,
                    kMaxShardSize);
    }
    if ((which & kKernelScopes) != 0)
        add_setting(command, "--kernel-scopes", "Plan for a kernel that has these", parse_scopes,
                    options.kernel_scopes)
            ->type_name(word::kScopes);
    if ((which & kJson) != 0) command.add_flag("--json", options.json, kJsonHelp);
    if ((which & kConfig) != 0)
        add_word(command, "--config", options.config, word::kFile,
                 "Policy file instead of the installed ones");
}

CLI::Option* add_target(CLI::App& command, Given& g) {
    return add_word(command, "TARGET", g.target, word::kTarget, "A workqueue's name, or @default");
}

void add_needed_target(CLI::App& command, Given& g) {
    add_target(command, g)->required();
}

void add_nothing(CLI::App& /*command*/, Given& /*g*/) {}

void add_status(CLI::App& command, Given& g) {
    add_target(command, g);
    add_shared(command, g.options, kJson | kConfig);
}

void add_plan(CLI::App& command, Given& g) {
    auto* boot = command.add_flag("--boot", g.options.boot, "Boot options that the plan would need, and why");
    command
        .add_flag("--experiments", g.experiments,
                  "What would be compared with what, and the most that it can cost")
        ->excludes(boot);
    add_shared(command, g.options, kSource | kKernelScopes | kJson | kConfig);
}

int run_plan(const Given& g) {
    return g.options.boot ? plan_boot(g.options) : plan(g.options, g.experiments);
}

void add_explain(CLI::App& command, Given& g) {
    add_word(command, "NAME", g.target, word::kTarget,
             "A target, another workqueue, a kworker, a block device or a mount point")
        ->required();
    add_shared(command, g.options, kSource | kKernelScopes | kJson | kConfig);
}

void add_topology(CLI::App& command, Given& g) {
    add_shared(command, g.options, kSource | kJson | kConfig);
    add_word(command, "--save", g.options.save, word::kDirectory,
             "Also write a tree for --topology fsroot:DIR");
}

int run_topology(const Given& g) {
    if (!g.options.save.empty() && !tree_of(g.options))
        throw CLI::ValidationError("--save", "only live and fsroot:DIR have a tree");
    return topology(g.options);
}

void add_history(CLI::App& command, Given& g) {
    auto* target = add_target(command, g);
    add_shared(command, g.options, kJson);
    command.add_flag("--ledger", g.ledger, "All comparisons as lines of JSON, for fleet merge")
        ->excludes("--json")
        ->excludes(target);
}

int run_history(const Given& g) {
    return g.ledger ? history_ledger(g.options) : history(g.options, g.target);
}

void add_report(CLI::App& command, Given& g) {
    add_word(command, "-o,--output", g.output, word::kFile,
             "The file to write; stdout if not given, or for -");
    add_shared(command, g.options, kSource | kKernelScopes | kConfig);
}

int run_report(const Given& g) {
    if ((g.output.empty() || g.output == "-") && is_terminal())
        throw CLI::ValidationError("report", "a terminal cannot show the page: name a file with -o");
    return report(g.options, g.output.empty() ? "-" : g.output);
}

void add_check(CLI::App& command, Given& g) {
    command.add_option("FILE", g.files, "Policy files, main file first; the installed ones if none")
        ->type_name(word::kFile);
    add_shared(command, g.options, kJson);
}

// Throws a ValidationError of OPTION unless WORD is a scope.
void check_scope(const char* option, const std::string& word) {
    if (scope_named(word)) return;
    std::vector<std::string_view> names;
    for (const Scope scope : kAllScopes) names.push_back(name_of(scope));
    throw CLI::ValidationError(option, fmt::format("'{}' is not one of {}", word, fmt::join(names, ", ")));
}

void add_pin(CLI::App& command, Given& g) {
    add_needed_target(command, g);
    command.add_option("SCOPE", g.scope, "The scope to hold")->type_name(word::kScope)->required();
}

int run_pin(const Given& g) {
    check_scope("SCOPE", g.scope);
    return order(g.options, "Pin", {g.target, g.scope});
}

void add_revert(CLI::App& command, Given& g) {
    auto* target = add_target(command, g);
    command.add_flag("--all", g.all, "All targets")->excludes(target);
}

// To revert all targets, --all is required, so that a script with an unset variable does not do it.
int run_revert(const Given& g) {
    if (g.target.empty() && !g.all) throw CLI::ValidationError("revert", "name a target, or give --all");
    return order(g.options, "Revert", {g.target});  // "": all
}

void add_compare(CLI::App& command, Given& g) {
    add_needed_target(command, g);
    add_word(command, "--with", g.scope, word::kScope, "The scope to compare; default the next candidate");
    add_shared(command, g.options, kJson);
}

int run_compare(const Given& g) {
    if (!g.scope.empty()) check_scope("--with", g.scope);
    return compare(g.options, g.target, g.scope);
}

constexpr const char* kLook = "Look";
constexpr const char* kControl = "Control";
constexpr const char* kMeasure = "Measure";
constexpr const char* kFleet = "Fleet";

const Command kCommands[] = {
    {kLook, "status", "What the daemon does with each target; also without a command",
     simple(add_status, [](const Given& g) { return status(g.options, g.target); }), true},
    {kLook, "plan", "What would be set, and why", simple(add_plan, run_plan), true},
    {kLook, "explain", "What a target, workqueue, kworker, device or mount is, and its plan",
     simple(add_explain, [](const Given& g) { return explain(g.options, g.target); }), true},
    {kLook, "topology", "LLCs, cores and shards of a machine", simple(add_topology, run_topology), true},
    {kLook, "history", "The verdicts so far, with effects and pairs", simple(add_history, run_history), true},
    {kLook, "report", "Write verdicts, plan and topology as an HTML page", simple(add_report, run_report)},
    {kLook, "check", "Look for mistakes in a policy",
     simple(add_check, [](const Given& g) { return check(g.options, g.files); })},
    {kLook, "cat-config", "The policy as merged on this host, and where each value came from",
     simple([](CLI::App& command, Given& g) { add_shared(command, g.options, kJson | kConfig); },
            [](const Given& g) { return cat_config(g.options); }),
     true},
    {kControl, "pin", "Hold a target at a scope", simple(add_pin, run_pin)},
    {kControl, "unpin", "Give a pinned or reverted target back to the policy",
     simple(add_needed_target, [](const Given& g) { return order(g.options, "Unpin", {g.target}); })},
    {kControl, "revert", "Put a target, or all, back to the baseline until unpin or a reload",
     simple(add_revert, run_revert)},
    {kControl, "compare", "Compare a scope on a target now, and follow it to the verdict",
     simple(add_compare, run_compare)},
    {kControl, "pause", "Begin no experiment until `resume`, also after a reboot",
     simple(add_nothing, [](const Given& g) { return order(g.options, "Pause"); })},
    {kControl, "resume", "Let experiments begin again",
     simple(add_nothing, [](const Given& g) { return order(g.options, "Resume"); })},
    {kControl, "reload", "Read the policy again",
     simple(add_nothing, [](const Given& g) { return order(g.options, "Reload"); })},
    {kControl, "undo", "Shell commands that would put everything back",
     simple(add_nothing, [](const Given& g) { return undo(g.options); })},
    {kMeasure, "top", "What workqueues do, live: rates, waits, locks, functions", set_up_top},
    {kMeasure, "diagnose", "What keeps kworkers busy, in plain words", set_up_diagnose},
    {kMeasure, "dump", "The kernel's pods, worker pools and workqueues", set_up_dump, true},
    {kMeasure, "bench", "Is another scope worth it on this machine? On a dm-crypt device of its own",
     set_up_bench},
    {kMeasure, "ab", "Run a command under several settings in random order, and judge: ab ... -- COMMAND...",
     set_up_ab},
    {kMeasure, "judge", "Verdicts on recorded comparisons", set_up_judge},
    {kFleet, "fleet", "What the ledgers of many hosts say together: merge, show, policy", set_up_fleet, true},
};

}  // namespace

std::span<const Command> commands() {
    return kCommands;
}

}  // namespace wq::ctl
