// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --experiments`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "ctl/experiment_plan.h"
#include "ctl/render/terminal.h"
#include "engine/conditions.h"
#include "kernel/read_swap.h"
#include "model/lacks_scopes.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Seconds = std::chrono::duration<double>;

std::string duration_text(Seconds time) {
    return rough_time(static_cast<std::uint64_t>(std::ceil(time.count())), Rounded::up);
}

std::vector<std::string> that_serve_swap(const ExperimentPlan& plan, const std::set<std::string>& devices) {
    std::vector<std::string> out;
    for (const TargetExperiments& target : plan.targets)
        if (serves_swap(target.name, devices)) out.push_back(target.name);
    return out;
}

// What holds for all targets, a sentence each.
std::vector<std::string> remarks(const Machine& machine, const ExperimentPlan& plan,
                                 const std::string& named_only, const std::vector<std::string>& serve_swap) {
    const Judging& judge = machine.policy.judge;
    const auto compared =
        std::ranges::count_if(plan.targets, [](const TargetExperiments& t) { return !t.candidates.empty(); });
    if (compared == 0) return {"No target would be compared."};
    std::vector<std::string> out;
    out.push_back(fmt::format("{} of {} would be compared, each while it has traffic, up to {} at once.",
                              compared, plural(plan.targets.size(), "target"), judge.concurrent));
    out.push_back(fmt::format(
        "A pair takes {:g} s. Within {} pairs a comparison is decided, or it goes on with a pair every {}: "
        "after at most {}, if all targets are busy.",
        plan.slot_seconds, judge.settings.max_pairs, duration_text(Seconds(judge.holdback)),
        duration_text(Seconds(plan.most_seconds))));
    out.push_back(
        fmt::format("A target loses about {} a day to its candidates at most: the last pair may exceed it.",
                    duration_text(Seconds(judge.budget))));
    if (!named_only.empty())
        out.push_back(
            fmt::format("This host has {}: only targets that a rule names are compared.", named_only));
    if (!serve_swap.empty())
        out.push_back(fmt::format("Targets that serve swap are compared only if a rule names them: {}.",
                                  fmt::join(serve_swap, ", ")));
    return out;
}

}  // namespace

int plan_experiments(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const ExperimentPlan plan = experiments_of(*machine, machine->plan());
    const auto tree = tree_of(options);
    const std::string named_only = tree ? why_named_only(*tree) : "";
    const auto serve_swap = that_serve_swap(plan, tree ? swap_devices(*tree) : std::set<std::string>{});
    if (options.json) {
        const Judging& judge = machine->policy.judge;
        nlohmann::json targets = nlohmann::json::array();
        for (const TargetExperiments& target : plan.targets)
            targets.push_back(experiments_json(*machine, plan, target));
        fmt::print("{}\n", dump_json({{"mode", name_of(machine->policy.mode)},
                                      {"slot_seconds", plan.slot_seconds},
                                      {"max_pairs", judge.settings.max_pairs},
                                      {"concurrent", judge.concurrent},
                                      {"holdback_seconds", judge.holdback.count()},
                                      {"budget_seconds", judge.budget.count()},
                                      {"seconds", plan.most_seconds},
                                      {"named_only", named_only.empty() ? nlohmann::json(nullptr)
                                                                        : nlohmann::json(named_only)},
                                      {"serve_swap", serve_swap},
                                      {"targets", std::move(targets)}}));
        return kOk;
    }
    if (const std::string lacks = lacks_scopes(machine->kernel); !lacks.empty()) {
        fmt::print("{}\n", lacks);
        return kOk;
    }
    for (const std::string& remark : remarks(*machine, plan, named_only, serve_swap))
        fmt::print("{}", wrapped(remark, terminal_columns()));
    fmt::print("\n");
    Table table({"TARGET", "REFERENCE", "AT MOST", "CANDIDATES, IN THIS ORDER"});
    const unsigned pairs = machine->policy.judge.settings.max_pairs;
    for (const TargetExperiments& target : plan.targets) {
        const bool none = target.candidates.empty();
        const Seconds most(static_cast<double>(pairs * target.candidates.size()) * plan.slot_seconds);
        table.add({target.name, target.reference.empty() ? "-" : target.reference,
                   none ? "-" : duration_text(most),
                   none ? "none: " + target.reason : fmt::format("{}", fmt::join(target.candidates, ", "))});
    }
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    return kOk;
}

}  // namespace wq::ctl
