// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "bpf/bpf_workqueues.h"
#include "ctl/commands/known_name.h"
#include "ctl/experiment_plan.h"
#include "ctl/machine.h"
#include "ctl/render/host_text.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_command.h"
#include "machine/kernel_info.h"
#include "plan/pods.h"
#include "policy/policy_text.h"
#include "policy/toml_table.h"
#include "service/status.h"
#include "targets/step.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostLines = 4;  // per candidate, for its pods

// Returns "default (cache)", as the kernel prints it.
std::string scope_text(const ScopeFile& scope) {
    if (scope.word.empty()) return "-";
    if (scope.word == "default" && scope.effective)
        return fmt::format("default ({})", name_of(*scope.effective));
    return scope.word;
}

std::string planned_text(const PlanLine& line) {
    if (!line.planned) return "-";
    return line.finding == Finding::change ? planned_arm(line.target, line).name()
                                           : std::string(name_of(*line.planned));
}

std::vector<CpuSet> pods_of_candidate(const Machine& machine, const PlanLine& line, const Candidate& c) {
    return restrict_to(pods_in(machine.kernel, c.scope, machine.topology, machine.shard_size),
                       line.target.effective);
}

// Columns that remain after an indent.
std::size_t room_after(std::size_t indent) {
    return std::max<std::size_t>(terminal_columns(), 20) - indent;
}

std::string candidate_text(const Machine& machine, const PlanLine& line, const Candidate& c) {
    std::string names;
    for (auto scope = c.same.rbegin(); scope != c.same.rend(); ++scope)
        names += fmt::format("{}{}", names.empty() ? "" : " = ", name_of(*scope));
    const std::string cores = c.min_cores == c.max_cores
                                  ? plural(c.max_cores, "core")
                                  : fmt::format("{}..{} cores", c.min_cores, c.max_cores);
    std::vector<std::string> pods;
    for (const CpuSet& pod : pods_of_candidate(machine, line, c)) pods.push_back(pod.list());
    const std::string head = fmt::format("{}: {} of {}", names, plural(c.pools, "pool"), cores);
    std::string out;
    for (const std::string& part : wrap(head, room_after(2))) out += fmt::format("  {}\n", part);
    const auto lists = wrap_lists(pods, room_after(6));
    const bool long_list = lists.size() > kMostLines;
    for (std::size_t i = 0; i < (long_list ? kMostLines - 1 : lists.size()); i++)
        out += fmt::format("      {}\n", lists[i]);
    if (long_list) out += "      ... (all with --json)\n";
    return out;
}

// The daemon's status of TARGET; null if none runs with this kernel and policy.
nlohmann::json status_of(const Machine& machine, const std::string& target) {
    if (machine.status.is_object())
        for (const nlohmann::json& each : machine.status.at("targets"))
            if (each.value("name", "") == target) return each;
    return nullptr;
}

// Returns "cache with smt, then with cpu; at most 64 pairs of 5 s each", or why nothing is compared.
std::string compared_text(const Machine& machine, const ExperimentPlan& plan) {
    const TargetExperiments& target = plan.targets.front();
    if (target.candidates.empty()) return "nothing: " + target.reason;
    return fmt::format("{} with {}; at most {} pairs of {:g} s each", target.reference,
                       fmt::join(target.candidates, ", then with "), machine.policy.judge.settings.max_pairs,
                       plan.slot_seconds);
}

// Prints TEXT with a label, wrapped.
void print_labelled(const char* label, const std::string& text) {
    Table table({fmt::format("  {:<9}", label), text});
    fmt::print("{}", table.text(terminal_columns(), false));
}

// Prints nothing of a file that was damaged: `status` says that it is broken.
void print_progress(const nlohmann::json& target) {
    if (!target.is_object()) return;
    std::vector<std::pair<const char*, std::string>> lines;
    try {
        lines.emplace_back("state", target.value("state", ""));
        if (const auto verdict = target.value("verdict", nlohmann::json(nullptr)); verdict.is_object())
            lines.emplace_back("verdict", verdict_text(verdict));
        if (const auto now = target.value("comparison", nlohmann::json(nullptr)); now.is_object())
            lines.emplace_back("evidence", progress_text(now, wall_clock()));
    } catch (const nlohmann::json::exception&) {
        return;
    }
    for (const auto& [label, text] : lines) print_labelled(label, text);
}

// Returns nullptr for @default, which has its own table, and for a target without a rule.
const WorkqueueRule* rule_of(const Policy& policy, const PlanLine& line) {
    return line.target.kind == Kind::unbound && line.rule ? policy.rule_for(line.target.name) : nullptr;
}

// HELD_BACK: what holds the daemon back; "" if nothing does.
void print_explanation(const Machine& machine, const PlanLine& line, const nlohmann::json& target,
                       const std::string& held_back) {
    fmt::print("{}\n", line.target.name);
    fmt::print("  kind       {}\n  scope      {}\n", name_of(line.target.kind),
               scope_text(line.target.scope));
    const char* label = "CPUs";
    if (!line.target.effective.empty())
        for (const std::string& part : wrap_lists({line.target.effective.list()}, room_after(13))) {
            fmt::print("  {:<11}{}\n", label, part);
            label = "";
        }
    fmt::print("  rule       {}\n", line.rule ? line.rule->text() : "none");
    if (const WorkqueueRule* rule = rule_of(machine.policy, line); rule != nullptr) {
        if (!rule->expires.empty()) fmt::print("  until      {}\n", rule->expires);
        if (!rule->evidence.empty()) print_labelled("because", printable(rule->evidence));
    }
    fmt::print("  planned    {}\n  action     {}\n", planned_text(line), name_of(line.action));
    print_labelled("reason", line.reason);
    print_labelled("compared", compared_text(machine, experiments_of(machine, {line})));
    if (!held_back.empty()) print_labelled("held back", held_back);
    print_progress(target);
    if (const auto hosts = host_lines(machine.policy); !hosts.empty()) {
        Table table({"  hosts    ", hosts.front()});
        for (std::size_t i = 1; i < hosts.size(); i++) table.add({"", hosts[i]});
        fmt::print("{}", table.text(terminal_columns(), false));
    }
    if (line.candidates.empty()) return;
    fmt::print("{}", wrapped("candidates, coarsest first, with their pods:", room_after(0)));
    for (const Candidate& c : line.candidates) fmt::print("{}", candidate_text(machine, line, c));
}

// The plan line plus details that `plan` omits: the scopes of each candidate, its pods, and the host tables.
nlohmann::json explanation_json(const Machine& machine, const PlanLine& line, const nlohmann::json& target) {
    nlohmann::json out = plan_json(machine, line);
    const ExperimentPlan experiments = experiments_of(machine, {line});
    out["experiments"] = experiments_json(machine, experiments, experiments.targets.front());
    for (const char* key : {"state", "outcome", "comparison", "verdict"})
        out[key] = target.is_object() ? target.value(key, nlohmann::json(nullptr)) : nlohmann::json(nullptr);
    out["hosts"] = hosts_json(machine.policy);
    for (std::size_t i = 0; i < line.candidates.size(); i++) {
        const Candidate& c = line.candidates[i];
        nlohmann::json& candidate = out["candidates"][i];
        for (const Scope scope : c.same) candidate["same"].push_back(name_of(scope));
        for (const CpuSet& pod : pods_of_candidate(machine, line, c)) candidate["pods"].push_back(pod.list());
    }
    return out;
}

// Prints the explanations of the targets NAMES, or returns them with --json.
nlohmann::json explain_targets(const Options& options, const Machine& machine,
                               const std::vector<std::string>& names) {
    const std::string held_back = why_held_back(options, machine);
    nlohmann::json out = nlohmann::json::array();
    for (const PlanLine& line : machine.plan()) {
        if (std::ranges::find(names, line.target.name) == names.end()) continue;
        const nlohmann::json target = status_of(machine, line.target.name);
        if (options.json)
            out.push_back(explanation_json(machine, line, target));
        else
            print_explanation(machine, line, target, held_back);
    }
    return out;
}

std::string reference_text(const PlanLine& line) {
    return line.now ? baseline_arm(line.target, line).name() : "?";
}

// What LINES would change: "cache -> smt (2), cache -> system (1)".
std::string changes_text(const std::vector<const PlanLine*>& lines) {
    std::map<std::string, unsigned> changes;
    for (const PlanLine* line : lines)
        changes[fmt::format("{} -> {}", reference_text(*line), planned_text(*line))]++;
    std::vector<std::string> kinds;
    for (const auto& [change, n] : changes) kinds.push_back(fmt::format("{} ({})", change, n));
    return fmt::format("{}", fmt::join(kinds, ", "));
}

// The result of the plan. A target that is set first is compared afterwards, unless its rule holds it.
std::string summary_of(const std::vector<PlanLine>& lines, const ExperimentPlan& experiments) {
    std::vector<const PlanLine*> set;
    std::vector<const PlanLine*> with_plan;
    std::size_t compared = 0;
    for (std::size_t i = 0; i < lines.size(); i++) {
        const auto& candidates = experiments.targets[i].candidates;
        if (!candidates.empty()) compared++;
        if (lines[i].action == Action::set) set.push_back(&lines[i]);
        if (lines[i].action == Action::compare &&
            std::ranges::find(candidates, planned_text(lines[i])) != candidates.end())
            with_plan.push_back(&lines[i]);
    }
    const std::string all = plural(lines.size(), "target");
    if (set.empty() && compared == 0) return fmt::format("None of {} would be set or compared.", all);
    std::string out;
    if (!set.empty())
        out = fmt::format("{} of {} would be set first: {}", set.size(), all, changes_text(set));
    if (compared == 0) return out;
    out += fmt::format("{}{} of {} would be compared", set.empty() ? "" : "; ", compared, all);
    if (with_plan.empty()) return out;
    const bool some = with_plan.size() < compared;
    return out + (some ? fmt::format(", {} of them with the plan", with_plan.size()) : "") + ": " +
           changes_text(with_plan);
}

// Remarks that are not in the table, one sentence each.
std::vector<std::string> remarks(const Options& options, const Machine& machine,
                                 const std::vector<PlanLine>& lines) {
    std::vector<std::string> out;
    if (std::string held_back = held_back_remark(options, machine); !held_back.empty())
        out.push_back(std::move(held_back));
    if (std::ranges::any_of(lines, [](const PlanLine& l) { return l.target.kind == Kind::default_scope; }))
        out.emplace_back(
            "Only @default reaches workqueues without a folder in /sys: btrfs, NFS, loop; dm-crypt before "
            "6.10.");
    if (std::string why = why_not_its_own(machine.kernel); !why.empty()) out.push_back(std::move(why));
    for (std::string& note : notes_about(options, machine.policy)) out.push_back(std::move(note));
    return out;
}

}  // namespace

int plan(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const auto lines = machine->plan();
    if (options.json) {
        nlohmann::json targets = nlohmann::json::array();
        for (const PlanLine& line : lines) targets.push_back(plan_json(*machine, line));
        fmt::print("{}\n", dump_json({{"kernel", kernel_json(machine->kernel)},
                                      {"pods", pods_json(machine->kernel, machine->topology)},
                                      {"targets", std::move(targets)}}));
        return kOk;
    }
    if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty()) {
        fmt::print("{}\n", lacks);
        return kOk;
    }
    const ExperimentPlan experiments = experiments_of(*machine, lines);
    fmt::print("{}", wrapped(summary_of(lines, experiments), room_after(0)));
    fmt::print("\n");
    Table table({"TARGET", "SCOPE", "PLANNED", "ACTION", "COMPARED", "REASON"});
    for (std::size_t i = 0; i < lines.size(); i++) {
        const auto& candidates = experiments.targets[i].candidates;
        table.add({lines[i].target.name, scope_text(lines[i].target.scope), planned_text(lines[i]),
                   std::string(name_of(lines[i].action)),
                   candidates.empty() ? "-" : fmt::format("{}", fmt::join(candidates, ", ")),
                   lines[i].reason});
    }
    table.group_names();
    std::string notes;
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    for (const std::string& remark : remarks(options, *machine, lines))
        notes += wrapped(remark, room_after(0));
    if (!notes.empty()) fmt::print("\n{}", notes);
    return kOk;
}

int explain(const Options& options, const std::string& name) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const std::string target = name == "default" ? kDefaultTarget : sysfs_name(name);
    if (std::ranges::find(machine->targets, target, &Workqueue::name) != machine->targets.end()) {
        const nlohmann::json explained = explain_targets(options, *machine, {target});
        if (options.json) fmt::print("{}\n", dump_json(explained.front()));
        return kOk;
    }
    if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty()) return complain(lacks);
    const auto tree = tree_of(options);
    const auto known = tree ? known_name(*tree, machine->targets, name) : std::nullopt;
    if (!known) {
        std::vector<std::string_view> names;
        for (const Workqueue& each : machine->targets) names.push_back(each.name);
        const std::string nearest = suggestion(target, names);
        return complain(name + ": no such target" +
                        (nearest.empty() ? "; `wq-tunectl plan` lists them" : nearest));
    }
    if (!options.json)
        for (const std::string& sentence : known->text)
            fmt::print("{}", wrapped(printable(sentence), room_after(0)));
    if (!options.json && !known->targets.empty()) fmt::print("\n");
    nlohmann::json explained = explain_targets(options, *machine, known->targets);
    if (options.json)
        fmt::print("{}\n", dump_json({{"name", name},
                                      {"kind", known->kind},
                                      {"text", known->text},
                                      {"targets", std::move(explained)}}));
    return kOk;
}

}  // namespace wq::ctl
