// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan` and `plan --experiments`.
#include "ctl/commands/shown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "experiment/slot.h"
#include "service/status.h"
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

// How much is compared and what it costs.
void add_costs(Shown& out, const Judging& judge, const ExperimentPlan& plan) {
    const auto compared =
        std::ranges::count_if(plan.targets, [](const TargetExperiments& t) { return !t.candidates.empty(); });
    if (compared == 0) return out.add("No target would be compared.");
    out.add(fmt::format("{} of {} would be compared, each while it has traffic, up to {} at once.", compared,
                        plural(plan.targets.size(), "target"), judge.concurrent));
    out.add(fmt::format(
        "A pair takes {:g} s. Within {} pairs a comparison is decided, or it goes on with a pair every {}: "
        "after at most {}, if all targets are busy and no pair is dropped.",
        plan.slot_seconds, judge.settings.max_pairs, duration_text(judge.recheck),
        duration_text(Seconds(plan.most_seconds))));
    if (std::ranges::any_of(plan.targets,
                            [](const TargetExperiments& t) { return t.comparisons > t.candidates.size(); }))
        out.add("This includes comparisons of undecided candidates with a later one that improved.");
    out.add(
        fmt::format("A target loses about {} a day to its candidates at most: the last pair may exceed it.",
                    duration_text(judge.budget)));
}

Shown experiments_shown(const Options& options, const Machine& machine, const ExperimentPlan& plan) {
    Shown out;
    add_costs(out, machine.policy.judge, plan);
    if (std::string held_back = held_back_remark(options, machine); !held_back.empty())
        out.add(std::move(held_back));
    out.add("");
    Table table({"TARGET", "REFERENCE", "AT MOST", "CANDIDATES, IN THIS ORDER"});
    for (const TargetExperiments& target : plan.targets) {
        const bool none = target.candidates.empty();
        const Seconds most(static_cast<double>(target.pairs) * plan.slot_seconds);
        table.add({target.name, target.reference.empty() ? "-" : target.reference,
                   none ? "-" : duration_text(most),
                   none ? "none: " + target.reason : fmt::format("{}", fmt::join(target.candidates, ", "))});
    }
    out.add(std::move(table));
    return out;
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

json plan_document(const Options& options, const Machine& machine, const std::vector<PlanLine>& lines) {
    json targets = json::array();
    for (const PlanLine& line : lines) targets.push_back(plan_json(machine, line));
    return {{"kernel", kernel_json(machine.kernel)},
            {"pods", pods_json(machine.kernel, machine.topology)},
            {"held_back", word_or_null(why_held_back(options, machine))},
            {"targets", std::move(targets)}};
}

}  // namespace

Shown plan_shown(const Options& options, const Machine& machine, const std::vector<PlanLine>& lines) {
    Shown out;
    if (const std::string lacks = lacks_scopes(machine.kernel); !lacks.empty()) {
        out.add(lacks);
        return out;
    }
    const ExperimentPlan experiments = experiments_of(machine, lines);
    out.add(summary_of(lines, experiments));
    out.add("");
    Table table({"TARGET", "SCOPE", "PLANNED", "ACTION", "COMPARED", "REASON"});
    for (std::size_t i = 0; i < lines.size(); i++) {
        const auto& candidates = experiments.targets[i].candidates;
        table.add({lines[i].target.name, scope_text(lines[i].target.scope), planned_text(lines[i]),
                   std::string(name_of(lines[i].action)),
                   candidates.empty() ? "-" : fmt::format("{}", fmt::join(candidates, ", ")),
                   lines[i].reason});
    }
    table.group_names();
    out.add(std::move(table));
    std::vector<std::string> remarks = {held_back_remark(options, machine)};
    if (std::ranges::any_of(lines, [](const PlanLine& l) { return l.target.kind == Kind::default_scope; }))
        remarks.emplace_back(
            "Only @default reaches workqueues without a folder in /sys: btrfs, NFS, loop; dm-crypt before "
            "6.10.");
    remarks.push_back(why_not_its_own(machine.kernel));
    for (std::string& note : notes_about(options, machine.policy)) remarks.push_back(std::move(note));
    std::erase(remarks, "");
    if (!remarks.empty()) out.add("");
    for (std::string& remark : remarks) out.add(std::move(remark));
    return out;
}

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

// Targets share slots; @default has slots of its own.
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines) {
    const Judging& judge = machine.policy.judge;
    ExperimentPlan out;
    const SlotTimes times = times_of_slot(judge, us(judge.window), false);
    out.slot_seconds = static_cast<double>(times.lead + 2 * times.window + times.drain) / 1e6;
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

int plan(const Options& options, bool experiments) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const auto lines = machine->plan();
    if (!options.json && !experiments) {
        fmt::print("{}", plan_shown(options, *machine, lines).text());
        return kOk;
    }
    const ExperimentPlan plan = experiments_of(*machine, lines);
    if (options.json)
        fmt::print("{}\n", json_text(experiments ? experiments_document(options, *machine, plan)
                                                 : plan_document(options, *machine, lines)));
    else if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty())
        fmt::print("{}\n", lacks);
    else
        fmt::print("{}", experiments_shown(options, *machine, plan).text());
    return kOk;
}

}  // namespace wq::ctl
