// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --experiments`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "ctl/experiment_plan.h"
#include "ctl/json_values.h"
#include "ctl/render/terminal.h"
#include "machine/kernel_info.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Seconds = std::chrono::duration<double>;

std::string duration_text(Seconds time) {
    return rough_time(static_cast<std::uint64_t>(std::ceil(time.count())), Rounded::up);
}

// How much is compared and what it costs, one sentence each.
std::vector<std::string> costs(const Machine& machine, const ExperimentPlan& plan) {
    const Judging& judge = machine.policy.judge;
    const auto compared =
        std::ranges::count_if(plan.targets, [](const TargetExperiments& t) { return !t.candidates.empty(); });
    if (compared == 0) return {"No target would be compared."};
    std::vector<std::string> out;
    out.push_back(fmt::format("{} of {} would be compared, each while it has traffic, up to {} at once.",
                              compared, plural(plan.targets.size(), "target"), judge.concurrent));
    out.push_back(fmt::format(
        "A pair takes {:g} s. Within {} pairs a comparison is decided, or it goes on with a pair every {}: "
        "after at most {}, if all targets are busy and no pair is dropped.",
        plan.slot_seconds, judge.settings.max_pairs, duration_text(Seconds(judge.recheck)),
        duration_text(Seconds(plan.most_seconds))));
    if (std::ranges::any_of(plan.targets,
                            [](const TargetExperiments& t) { return t.comparisons > t.candidates.size(); }))
        out.emplace_back("This includes comparisons of undecided candidates with a later one that improved.");
    out.push_back(
        fmt::format("A target loses about {} a day to its candidates at most: the last pair may exceed it.",
                    duration_text(Seconds(judge.budget))));
    return out;
}

// Remarks that apply to all targets, one sentence each.
std::vector<std::string> experiment_remarks(const Options& options, const Machine& machine,
                                            const ExperimentPlan& plan) {
    std::vector<std::string> out = costs(machine, plan);
    if (std::string held_back = held_back_remark(options, machine); !held_back.empty())
        out.push_back(std::move(held_back));
    return out;
}

}  // namespace

int plan_experiments(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const ExperimentPlan plan = experiments_of(*machine, machine->plan());
    if (options.json) {
        const Judging& judge = machine->policy.judge;
        nlohmann::json targets = nlohmann::json::array();
        for (const TargetExperiments& target : plan.targets)
            targets.push_back(experiments_json(*machine, plan, target));
        fmt::print("{}\n", dump_json({{"mode", name_of(machine->policy.mode)},
                                      {"slot_seconds", plan.slot_seconds},
                                      {"max_pairs", judge.settings.max_pairs},
                                      {"concurrent", judge.concurrent},
                                      {"recheck_seconds", judge.recheck.count()},
                                      {"budget_seconds", judge.budget.count()},
                                      {"seconds", plan.most_seconds},
                                      {"held_back", word_or_null(why_held_back(options, *machine))},
                                      {"targets", std::move(targets)}}));
        return kOk;
    }
    if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty()) {
        fmt::print("{}\n", lacks);
        return kOk;
    }
    for (const std::string& remark : experiment_remarks(options, *machine, plan))
        fmt::print("{}", wrapped(remark, terminal_columns()));
    fmt::print("\n");
    Table table({"TARGET", "REFERENCE", "AT MOST", "CANDIDATES, IN THIS ORDER"});
    for (const TargetExperiments& target : plan.targets) {
        const bool none = target.candidates.empty();
        const Seconds most(static_cast<double>(most_pairs(*machine, target)) * plan.slot_seconds);
        table.add({target.name, target.reference.empty() ? "-" : target.reference,
                   none ? "-" : duration_text(most),
                   none ? "none: " + target.reason : fmt::format("{}", fmt::join(target.candidates, ", "))});
    }
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    return kOk;
}

}  // namespace wq::ctl
