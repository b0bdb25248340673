// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>

#include "base/version.h"
#include "ctl/ab/ab_command.h"
#include "ctl/commands/judge_command.h"
#include "ctl/dump/dump_command.h"
#include "ctl/machine.h"
#include "ctl/options.h"
#include "ctl/setting_option.h"
#include "ctl/top/top_command.h"

namespace {

using wq::ctl::not_empty;
using wq::ctl::Options;

struct Arguments {
    Options options;
    std::string target;
    std::string scope;
    std::string output;
    std::optional<std::string> revert_target;
    std::vector<std::string> files;
    bool print = false;
    bool export_policy = false;
};

void add_source_options(CLI::App& command, Arguments& a) {
    command.add_option("--topology", a.options.topology, "live | fsroot:DIR | xml:FILE | synthetic:DESC")
        ->capture_default_str()
        ->check(not_empty);
    command.add_option("--shard-size", a.options.shard_size, "Cores per shard")
        ->check(wq::ctl::decimal)
        ->check(CLI::Range(1, 65536));
}

void add_plan_options(CLI::App& command, Arguments& a) {
    add_source_options(command, a);
    const auto take = [&a](const std::string& list) {
        const auto scopes = wq::parse_scopes(list);
        if (!scopes) throw CLI::ValidationError("--kernel-scopes", scopes.error().text);
        a.options.kernel_scopes = *scopes;
    };
    command.add_option_function<std::string>("--kernel-scopes", take,
                                             "Plan for a kernel that has these: cpu,smt,cache,...");
}

void add_json(CLI::App& command, Arguments& a) {
    command.add_flag("--json", a.options.json, "For machines");
}

void add_config(CLI::App& command, Arguments& a) {
    command.add_option("--config", a.options.config, "Policy file instead of the installed ones")
        ->check(not_empty);
}

CLI::App* add(CLI::App& app, const char* name, const char* text, const std::function<int()>& run, int& code) {
    CLI::App* command = app.add_subcommand(name, text);
    command->callback([run, &code] { code = run(); });
    return command;
}

void add_looking(CLI::App& app, Arguments& a, int& code) {
    const auto& o = a.options;
    auto* status = add(
        app, "status", "What the daemon does with each target", [&] { return wq::ctl::status(o); }, code);
    add_json(*status, a);
    add_config(*status, a);
    auto* topology = add(
        app, "topology", "LLCs, cores and shards of a machine", [&] { return wq::ctl::topology(o); }, code);
    add_source_options(*topology, a);
    add_json(*topology, a);
    add_config(*topology, a);
    auto* plan = add(
        app, "plan", "What would be set, and why",
        [&] { return o.boot ? wq::ctl::plan_boot(o) : wq::ctl::plan(o); }, code);
    plan->add_flag("--boot", a.options.boot, "Boot options that the plan would need, and why");
    add_plan_options(*plan, a);
    add_json(*plan, a);
    add_config(*plan, a);
    auto* explain = add(
        app, "explain", "One target's plan with its candidates",
        [&] { return wq::ctl::explain(o, a.target); }, code);
    explain->add_option("TARGET", a.target, "A workqueue's name, or @default")->required()->check(not_empty);
    add_plan_options(*explain, a);
    add_json(*explain, a);
    add_config(*explain, a);
    auto* history = add(
        app, "history", "The trials that ended, with effects and verdicts",
        [&] { return a.export_policy ? wq::ctl::export_policy(o) : wq::ctl::history(o); }, code);
    add_json(*history, a);
    history
        ->add_flag("--export-policy", a.export_policy, "The verdicts as a policy for machines of this kind")
        ->excludes("--json");
    auto* report = add(
        app, "report", "All of it as a page for a browser", [&] { return wq::ctl::report(o, a.output); },
        code);
    report->add_option("-o,--output", a.output, "The file to write; - is stdout")
        ->required()
        ->check(not_empty);
    add_plan_options(*report, a);
    add_config(*report, a);
    auto* check = add(
        app, "check", "Look for mistakes in a policy", [&] { return wq::ctl::check(o, a.files); }, code);
    check->add_option("FILE", a.files, "Policy files, main file first; the installed ones if none");
    add_json(*check, a);
    auto* cat_config = add(
        app, "cat-config", "The policy as merged on this host, and where each value came from",
        [&] { return wq::ctl::cat_config(o); }, code);
    add_json(*cat_config, a);
    add_config(*cat_config, a);
}

void add_orders(CLI::App& app, Arguments& a, int& code) {
    const auto& o = a.options;
    auto* pin = add(
        app, "pin", "Hold a target at a scope", [&] { return wq::ctl::pin(o, a.target, a.scope); }, code);
    pin->add_option("TARGET", a.target)->required()->check(not_empty);
    pin->add_option("SCOPE", a.scope)->required();
    auto* unpin = add(
        app, "unpin", "Give a pinned or reverted target back to the policy",
        [&] { return wq::ctl::unpin(o, a.target); }, code);
    unpin->add_option("TARGET", a.target)->required()->check(not_empty);
    auto* revert = add(
        app, "revert", "Put a target, or all, back to the baseline until a reload",
        [&] { return wq::ctl::revert(o, a.revert_target); }, code);
    revert->add_option("TARGET", a.revert_target)->check(not_empty);
    auto* trial = add(
        app, "trial", "Try a scope on a target now, and follow it to the verdict",
        [&] { return wq::ctl::trial(o, a.target, a.scope); }, code);
    trial->add_option("TARGET", a.target)->required()->check(not_empty);
    trial->add_option("--arm", a.scope, "The scope to try; what would be tried next, if not given")
        ->check(not_empty);
    add_json(*trial, a);
    auto* undo = add(
        app, "undo", "Shell commands that would put everything back", [&] { return wq::ctl::undo(o); }, code);
    undo->add_flag("--print", a.print, "Print the commands; nothing is run")->required();
    add(
        app, "reload", "Read the policy again", [&] { return wq::ctl::reload(o); }, code);
}

// Prints what CLI11 says, the help included.
int usage(const CLI::App& app, const CLI::ParseError& error) {
    return app.exit(error) == 0 ? wq::ctl::kOk : wq::ctl::kUsage;
}

int run(int argc, char** argv) {
    Arguments a;
    int code = 0;
    CLI::App app("Looks into wq-tuned and the kernel's workqueues, and gives orders.");
    app.set_version_flag("--version", wq::version());
    app.require_subcommand(1);
    app.add_option("--root", a.options.root, "Directory that stands for /: a tree of a test")
        ->check(CLI::ExistingDirectory);
    std::vector<std::string> command;
    argc = wq::ctl::cut_command(argc, argv, command);
    add_looking(app, a, code);
    wq::ctl::add_judge(app, code);
    wq::ctl::add_ab(app, a.options, command, code);
    wq::ctl::add_dump(app, code);
    wq::ctl::add_top(app, code);
    add_orders(app, a, code);
    try {
        app.parse(argc, argv);
    } catch (const CLI::RequiredError& error) {
        const auto words = app.remaining();
        if (!app.get_subcommands().empty() || words.empty()) return usage(app, error);
        const char* what = words.front().starts_with('-') ? "option" : "command";
        wq::ctl::complain(fmt::format("unknown {} '{}'; --help lists them", what, words.front()));
        return wq::ctl::kUsage;
    } catch (const CLI::ParseError& error) {
        return usage(app, error);
    } catch (const std::exception& error) {
        return wq::ctl::complain(error.what());
    }
    return code;
}

// Else the next file that is opened would be taken for stdout. What is written to these fails, as it would
// have.
void fill_closed() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
    fill_closed();
    const int code = run(argc, argv);
    // Who failed has said so already.
    const int unwritten = std::fflush(stdout) != 0 ? errno : 0;
    if (code == wq::ctl::kFailure || (unwritten == 0 && std::ferror(stdout) == 0)) return code;
    return wq::ctl::complain(
        fmt::format("writing: {}", unwritten != 0 ? std::strerror(unwritten) : "it failed"));
}
