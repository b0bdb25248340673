// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan`, `plan --experiments` and `plan --boot`.
#include "ctl/commands/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/verdicts.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "plan/boot_advice.h"
#include "plan/pods.h"
#include "service/status.h"
#include "targets/inventory.h"
#include "targets/step.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using Seconds = std::chrono::duration<double>;

// The maximum number of comparisons for CANDIDATES, which are compared with the reference in this order. An
// undecided candidate is also compared with a later one that improved, if it is finer than that one or is the
// plan (targets/step.h).
std::size_t most_comparisons(const PlanLine& line, const std::vector<Arm>& candidates) {
    const Arm plan = planned_arm(line.target, line);
    std::size_t count = candidates.size();
    for (std::size_t later = 0; later < candidates.size(); later++)
        for (std::size_t i = 0; i < later; i++)  // a plan's candidates are sorted, the coarsest first
            if (candidates[i] == plan ||
                candidate_with(line, candidates[i].scope) > candidate_with(line, candidates[later].scope))
                count++;
    return count;
}

std::vector<Arm> would_compare(const Machine& machine, const PlanLine& line) {
    if (line.action == Action::skip) return {};
    return candidates_of({line.target, line, machine.policy, machine.shard_size});
}

TargetExperiments experiments_on(const Machine& machine, const PlanLine& line) {
    TargetExperiments out;
    out.name = line.target.name;
    out.reason = line.reason;
    if (line.action == Action::skip) return out;
    out.reference = baseline_arm(line.target, line).name();
    const std::vector<Arm> candidates = would_compare(machine, line);
    for (const Arm& arm : candidates) out.candidates.push_back(arm.name());
    out.comparisons = most_comparisons(line, candidates);
    out.pairs = out.comparisons * machine.policy.judge.settings.max_pairs;
    const ScopeWish& wish = *wish_for(line.target, machine.policy);
    out.reason = !candidates.empty() ? ""
                 : wish.hold         ? "the rule holds it: compared only by order"
                 : wish.sets_first() ? "the scope of the rule is in place"
                                     : "no candidate makes other pools";
    return out;
}

std::string duration_text(Seconds time) {
    return rough_time(static_cast<std::uint64_t>(std::ceil(time.count())), Rounded::up);
}

// What LINES would change: "cache -> smt (2), cache -> system (1)".
std::string changes_text(const std::vector<const PlanLine*>& lines) {
    std::map<std::string, unsigned> changes;
    for (const PlanLine* line : lines)
        changes[fmt::format("{} -> {}", line->now ? baseline_arm(line->target, *line).name() : "?",
                            planned_text(*line))]++;
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

void print_plan(const Options& options, const Machine& machine, const std::vector<PlanLine>& lines,
                const ExperimentPlan& experiments) {
    print_text(summary_of(lines, experiments));
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
    table.print();
    std::vector<std::string> remarks = {held_back_remark(options, machine)};
    if (std::ranges::any_of(lines, [](const PlanLine& l) { return l.target.kind == Kind::default_scope; }))
        remarks.emplace_back(
            "Only @default reaches workqueues without a folder in /sys: btrfs, NFS, loop; dm-crypt before "
            "6.10.");
    remarks.push_back(why_not_its_own(machine.kernel));
    for (std::string& note : notes_about(options, machine.policy)) remarks.push_back(std::move(note));
    std::erase(remarks, "");
    if (!remarks.empty()) fmt::print("\n");
    for (const std::string& remark : remarks) print_text(remark);
}

// How much is compared and what it costs.
void print_costs(const Judging& judge, const ExperimentPlan& plan) {
    const auto compared =
        std::ranges::count_if(plan.targets, [](const TargetExperiments& t) { return !t.candidates.empty(); });
    if (compared == 0) return print_text("No target would be compared.");
    print_text(fmt::format("{} of {} would be compared, each while it has traffic, up to {} at once.",
                           compared, plural(plan.targets.size(), "target"), judge.concurrent));
    print_text(fmt::format(
        "A pair takes {:g} s. Within {} pairs a comparison is decided, or it goes on with a pair every {}: "
        "after at most {}, if all targets are busy and no pair is dropped.",
        plan.slot_seconds, judge.settings.max_pairs, duration_text(judge.recheck),
        duration_text(Seconds(plan.most_seconds))));
    if (std::ranges::any_of(plan.targets,
                            [](const TargetExperiments& t) { return t.comparisons > t.candidates.size(); }))
        print_text("This includes comparisons of undecided candidates with a later one that improved.");
    print_text(
        fmt::format("A target loses about {} a day to its candidates at most: the last pair may exceed it.",
                    duration_text(judge.budget)));
}

void print_experiments(const Options& options, const Machine& machine, const ExperimentPlan& plan) {
    print_costs(machine.policy.judge, plan);
    if (const std::string held_back = held_back_remark(options, machine); !held_back.empty())
        print_text(held_back);
    fmt::print("\n");
    Table table({"TARGET", "REFERENCE", "AT MOST", "CANDIDATES, IN THIS ORDER"});
    for (const TargetExperiments& target : plan.targets) {
        const bool none = target.candidates.empty();
        const Seconds most(static_cast<double>(target.pairs) * plan.slot_seconds);
        table.add({target.name, target.reference.empty() ? "-" : target.reference,
                   none ? "-" : duration_text(most),
                   none ? "none: " + target.reason : fmt::format("{}", fmt::join(target.candidates, ", "))});
    }
    table.print();
}

json experiments_document(const Options& options, const Machine& machine, const ExperimentPlan& plan) {
    const Judging& judge = machine.policy.judge;
    json targets = json::array();
    for (const TargetExperiments& target : plan.targets)
        targets.push_back(experiments_json(target, plan.slot_seconds));
    return {{"mode", name_of(machine.policy.mode)},
            {"slot_seconds", plan.slot_seconds},
            {"max_pairs", judge.settings.max_pairs},
            {"concurrent", judge.concurrent},
            {"recheck_seconds", judge.recheck.count()},
            {"budget_seconds", judge.budget.count()},
            {"seconds", plan.most_seconds},
            {"held_back", word_or_null(why_held_back(options, machine))},
            {"targets", std::move(targets)}};
}

json plan_document(const Machine& machine, const std::vector<PlanLine>& lines) {
    json targets = json::array();
    for (const PlanLine& line : lines) targets.push_back(plan_json(machine, line));
    return {{"kernel", kernel_json(machine.kernel)},
            {"pods", pods_json(machine.kernel, machine.topology)},
            {"targets", std::move(targets)}};
}

int print_planned(const Options& options, bool experiments) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const auto lines = machine->plan();
    const ExperimentPlan plan = experiments_of(*machine, lines);
    if (options.json)
        fmt::print("{}\n", dump_json(experiments ? experiments_document(options, *machine, plan)
                                                 : plan_document(*machine, lines)));
    else if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty())
        fmt::print("{}\n", lacks);
    else if (experiments)
        print_experiments(options, *machine, plan);
    else
        print_plan(options, *machine, lines, plan);
    return kOk;
}

}  // namespace

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

// A slot with a pair has a lead as long as a washout, two windows, and a drain as long as a washout
// (experiment/slot.h). Targets share slots; @default has slots of its own.
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines) {
    const Judging& judge = machine.policy.judge;
    ExperimentPlan out;
    out.slot_seconds = 2 * Seconds(judge.window + judge.washout).count();
    std::size_t all = 0;
    std::size_t most = 0;
    std::size_t alone = 0;
    for (const PlanLine& line : lines) {
        out.targets.push_back(experiments_on(machine, line));
        const std::size_t n = out.targets.back().comparisons;
        if (line.target.kind == Kind::default_scope) {
            alone = n;
        } else {
            all += n;
            most = std::max(most, n);
        }
    }
    const std::size_t rounds = std::max(most, (all + judge.concurrent - 1) / judge.concurrent) + alone;
    out.most_seconds = static_cast<double>(rounds * judge.settings.max_pairs) * out.slot_seconds;
    return out;
}

json experiments_json(const TargetExperiments& target, double slot_seconds) {
    return {{"name", target.name},
            {"reference", word_or_null(target.reference)},
            {"candidates", target.candidates},
            {"pairs", target.pairs},
            {"seconds", static_cast<double>(target.pairs) * slot_seconds},
            {"reason", target.reason}};
}

json plan_json(const Machine& machine, const PlanLine& line) {
    json candidates = json::array();
    json compared = json::array();
    for (const Arm& arm : would_compare(machine, line)) compared.push_back(name_of(arm.scope));
    for (const Candidate& c : line.candidates)
        candidates.push_back({{"scope", name_of(c.scope)},
                              {"pools", c.pools},
                              {"cores_per_pool", {c.min_cores, c.max_cores}}});
    const Workqueue& target = line.target;
    return {{"name", target.name},
            {"kind", name_of(target.kind)},
            {"scope", word_or_null(target.scope.word)},
            {"effective", name_or_null(target.scope.effective)},
            {"planned", name_or_null(line.planned)},
            {"action", name_of(line.action)},
            {"reason", line.reason},
            {"rule", line.rule ? json(line.rule->text()) : json(nullptr)},
            {"would_compare", std::move(compared)},
            {"candidates", std::move(candidates)}};
}

int plan(const Options& options) {
    return print_planned(options, false);
}

int plan_experiments(const Options& options) {
    return print_planned(options, true);
}

// ---- plan --boot

namespace {

// Returns the targets of classes whose latest trusted trial on this kernel and topology ended with
// kStuckReason; none if the verdicts cannot be read.
std::set<std::string> on_old_pools(const Options& options, const Machine& machine) {
    std::set<std::string> out;
    if (options.topology != "live" || machine.kernel.release.empty()) return out;
    VerdictStore verdicts(Paths{options.root}.verdicts());
    if (!verdicts.read()) return out;
    const std::string topology = machine_fingerprint(machine.kernel, machine.topology);
    const std::string kernel = kernel_key(machine.kernel);
    const std::int64_t now = ::time(nullptr);
    std::set<std::string> classes;
    for (const VerdictRecord& record : verdicts.records()) {
        if (record.key.kernel != kernel || record.key.topology != topology) continue;
        if (!is_trusted(record, machine.policy.judge.retry_after, now)) continue;
        classes.erase(record.key.kind);
        if (record.reason == kStuckReason) classes.insert(record.key.kind);
    }
    for (const Workqueue& target : machine.targets)
        if (classes.contains(class_of(target.name))) out.insert(target.name);
    return out;
}

// The types of the kernel are read only where CPUs are isolated, because that takes long.
BootFacts read_boot_facts(const Paths& paths, const KernelInfo& kernel) {
    const Isolation isolation = read_isolation(paths);
    BootFacts out;
    out.cmdline = read_first_line(paths.cmdline());
    out.nohz_full = isolation.nohz_full;
    out.isolated = isolation.isolcpus | isolation.nohz_full;
    if (!out.isolated.empty()) out.pwlocks = read_features(paths, kernel).pwlocks.value_or(false);
    out.power_efficient = read_first_line(paths.parameters() + "/power_efficient") == "Y";
    out.hog_us = number_of<std::uint64_t>(read_first_line(paths.parameters() + "/cpu_intensive_thresh_us"));
    return out;
}

BootAdvice advice_for(const Options& options, const Machine& machine) {
    BootInput input{machine.topology,
                    machine.kernel,
                    machine.policy,
                    machine.targets,
                    machine.pods_unknown,
                    std::nullopt,
                    "",
                    on_old_pools(options, machine)};
    const auto set_by = machine.policy.origins.find("shard.size");
    if (options.shard_size) {
        input.shard_size = options.shard_size;
        input.asked_by = "--shard-size";
    } else if (set_by != machine.policy.origins.end()) {
        input.shard_size = machine.policy.shard_size;
        input.asked_by = set_by->second.text();
    }
    return advise_boot(input);
}

void print_advice(const BootAdvice& advice, const std::vector<Alternative>& others) {
    if (advice.options.empty()) print_text("The plan needs no boot option.");
    for (const BootOption& each : advice.options) {
        fmt::print("{}\n", each.option);
        print_text(each.reason, 4);
    }
    for (const std::string& note : advice.notes) print_text("Note: " + note);
    if (others.empty()) return;
    fmt::print("\n");
    print_text(
        "Alternatives that the plan does not need. Only a comparison (`wq-tunectl ab --arm`) shows which is "
        "better here.");
    for (const Alternative& one : others) {
        fmt::print("\n");
        print_text(one.devices.empty() ? one.option
                                       : fmt::format("{} ({})", one.option, fmt::join(one.devices, ", ")));
        print_text("For: " + one.speaks_for + ".", 4);
        print_text("Against: " + one.against + ".", 4);
        print_text("How: " + one.how + ".", 4);
    }
}

nlohmann::json json_of(const Machine& machine, const BootAdvice& advice,
                       const std::vector<Alternative>& others) {
    nlohmann::json options = nlohmann::json::array();
    for (const BootOption& each : advice.options)
        options.push_back({{"option", each.option}, {"reason", each.reason}});
    nlohmann::json alternatives = nlohmann::json::array();
    for (const Alternative& one : others)
        alternatives.push_back({{"option", one.option},
                                {"devices", one.devices},
                                {"for", one.speaks_for},
                                {"against", one.against},
                                {"how", one.how}});
    return {{"kernel", kernel_json(machine.kernel)},
            {"boot", std::move(options)},
            {"notes", advice.notes},
            {"alternatives", std::move(alternatives)}};
}

}  // namespace

int plan_boot(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    BootAdvice advice = advice_for(options, *machine);
    // The devices and the kernel's parameters are read in /sys.
    const auto tree = tree_of(options);
    if (tree && !machine->kernel.release.empty())
        for (std::string& note : notes_on(read_boot_facts(*tree, machine->kernel)))
            advice.notes.push_back(std::move(note));
    const auto others = tree ? alternatives(read_io_devices(*tree)) : std::vector<Alternative>{};
    if (options.json)
        fmt::print("{}\n", dump_json(json_of(*machine, advice, others)));
    else
        print_advice(advice, others);
    return kOk;
}

}  // namespace wq::ctl
