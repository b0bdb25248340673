// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ctl/machine.h"
#include "ctl/terminal.h"
#include "tuner/status.h"

namespace wq::ctl {
namespace {

// "default (cache)", as the kernel prints it.
std::string scope_text(const ScopeFile& scope) {
    if (scope.word.empty()) return "-";
    if (scope.word == "default" && scope.effective)
        return fmt::format("default ({})", name_of(*scope.effective));
    return scope.word;
}

std::string planned_text(const PlanLine& line) {
    return line.planned ? std::string(name_of(*line.planned)) : "-";
}

std::string candidate_text(const Candidate& c) {
    std::string names;
    for (auto scope = c.same.rbegin(); scope != c.same.rend(); ++scope)
        names += fmt::format("{}{}", names.empty() ? "" : " = ", name_of(*scope));
    const std::string cores = c.min_cores == c.max_cores ? std::to_string(c.max_cores)
                                                         : fmt::format("{}..{}", c.min_cores, c.max_cores);
    return fmt::format("  {}: {} pool{} of {} core{}\n", names, c.pools, c.pools == 1 ? "" : "s", cores,
                       cores == "1" ? "" : "s");
}

void print_explanation(const PlanLine& line) {
    fmt::print("{}\n", line.target.name);
    fmt::print("  kind       {}\n  scope      {}\n", name_of(line.target.kind),
               scope_text(line.target.scope));
    if (!line.target.effective.empty()) fmt::print("  CPUs       {}\n", line.target.effective.list());
    fmt::print("  rule       {}\n", line.rule ? line.rule->text() : "none");
    fmt::print("  planned    {}\n  action     {}\n  reason     {}\n", planned_text(line),
               name_of(line.action), line.reason);
    if (line.candidates.empty()) return;
    fmt::print("candidates, coarsest first:\n");
    for (const Candidate& c : line.candidates) fmt::print("{}", candidate_text(c));
}

}  // namespace

int plan(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const auto lines = machine->plan();
    if (options.json) {
        nlohmann::json targets = nlohmann::json::array();
        for (const PlanLine& line : lines) targets.push_back(plan_json(line));
        fmt::print("{}\n",
                   dump_json({{"kernel", kernel_json(machine->kernel)}, {"targets", std::move(targets)}}));
        return kOk;
    }
    Table table({"TARGET", "SCOPE", "PLANNED", "ACTION", "REASON"});
    for (const PlanLine& line : lines)
        table.add({line.target.name, scope_text(line.target.scope), planned_text(line),
                   std::string(name_of(line.action)), line.reason});
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    return kOk;
}

int explain(const Options& options, const std::string& name) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    for (const PlanLine& line : machine->plan()) {
        if (line.target.name != name) continue;
        if (options.json)
            fmt::print("{}\n", dump_json(plan_json(line)));
        else
            print_explanation(line);
        return kOk;
    }
    return complain(name + ": no such target; `wq-tunectl plan` lists them");
}

}  // namespace wq::ctl
