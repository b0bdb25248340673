// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ctl/render/groups.h"
#include "ctl/render/progress.h"
#include "ctl/report/report_page.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// The rank of a row, and all its cells but the first.
using Rows = Groups<std::pair<int, std::string>>;

std::string candidates_html(const PlanLine& line) {
    std::string out;
    for (const Candidate& c : line.candidates) {
        const std::string cores = c.min_cores == c.max_cores
                                      ? std::to_string(c.max_cores)
                                      : fmt::format("{}\u2013{}", c.min_cores, c.max_cores);
        out += fmt::format("{}{}: {}\u00d7{}", out.empty() ? "" : "<br>", name_of(c.scope), c.pools, cores);
    }
    return out;
}

std::string state_cells(const json* target) {
    if (target == nullptr) return cell("Baseline", "") + cell("State", "");
    const json comparison = target->value("comparison", json(nullptr));
    return cell("Baseline", escape(word_of(*target, "baseline"))) +
           cell("State",
                escape(word_of(*target, "state")) +
                    quiet(comparison.is_object() ? odds_text(comparison) : word_of(*target, "reason")));
}

std::string cells_of(const PlanLine& line) {
    const Workqueue& target = line.target;
    return cell("Now",
                escape(scope_text(target)) +
                    quiet(target.kind == Kind::unbound ? "" : std::string(name_of(target.kind))),
                "short") +
           cell("Planned", line.planned ? std::string(name_of(*line.planned)) : "") +
           cell("Action", std::string(name_of(line.action))) +
           cell("Reason", prose(line.reason) + quiet(line.rule ? line.rule->text() : "")) +
           cell("Candidates", candidates_html(line), "short");
}

// Groups to be written come first, skipped groups last.
std::vector<Rows::Group> groups_of(const std::vector<PlanLine>& plan,
                                   const std::map<std::string, const json*>& targets) {
    Rows rows;
    for (const PlanLine& line : plan) {
        std::string cells = cells_of(line);
        if (!targets.empty()) {
            const auto known = targets.find(line.target.name);
            cells += state_cells(known == targets.end() ? nullptr : known->second);
        }
        const int rank = line.action == Action::skip ? 2 : line.action == Action::none ? 1 : 0;
        rows.add(line.target.name, {rank, std::move(cells)});
    }
    std::ranges::stable_sort(rows.groups(), {}, [](const Rows::Group& group) { return group.cells.first; });
    return rows.groups();
}

}  // namespace

std::string scope_text(const Workqueue& target) {
    std::string out = target.scope.word;
    if (out == "default" && target.scope.effective)
        out += fmt::format(" ({})", name_of(*target.scope.effective));
    if (target.strict == true) out += ", strict";
    return out;
}

std::map<std::string, const json*> targets_of(const json& status) {
    std::map<std::string, const json*> out;
    if (!status.is_object() || !status.contains("targets")) return out;
    for (const json& target : status["targets"])
        if (target.is_object()) out[word_of(target, "name")] = &target;
    return out;
}

std::string word_of(const json& target, const char* key) {
    const auto found = target.find(key);
    return found != target.end() && found->is_string() ? found->get<std::string>() : "-";
}

std::string names_html(const std::vector<std::string>& names) {
    static constexpr std::size_t kMost = 6;   // up to this many, all are shown
    static constexpr std::size_t kFirst = 3;  // else this many are shown
    const auto list = [&](std::size_t from, std::size_t to) {
        std::string out;
        for (std::size_t i = from; i < to; i++) out += (i == from ? "" : " ") + code(names[i]);
        return out;
    };
    if (names.size() <= kMost) return list(0, names.size());
    return list(0, kFirst) +
           folded(fmt::format("and {} more", names.size() - kFirst), list(kFirst, names.size()));
}

std::string plan_html(const std::vector<PlanLine>& plan, const json& status) {
    const auto targets = targets_of(status);
    std::string out = "<section id=\"plan\">\n<h2>Plan</h2>\n";
    if (plan.empty()) return out + "<p>There is no workqueue with an affinity scope here.</p>\n</section>\n";
    out +=
        "<p>What each target has now, what is planned for it, and why. Targets that differ in their names "
        "alone "
        "share a row. Candidates are the scopes that make different pools: number of pools \u00d7 cores of "
        "each.</p>\n";
    std::vector<Heading> headings = {{"Target"}, {"Now"},    {"Planned"},
                                     {"Action"}, {"Reason"}, {"Candidates"}};
    if (!targets.empty()) headings.insert(headings.end(), {{"Baseline"}, {"State"}});
    std::string rows;
    for (const Rows::Group& group : groups_of(plan, targets))
        rows += fmt::format(
            "<tr>{}{}</tr>\n",
            cell(group.names.size() == 1 ? "Target" : "Targets",
                 (group.names.size() == 1 ? "" : fmt::format("<strong>{}</strong> ", group.names.size())) +
                     names_html(group.names),
                 "names"),
            group.cells.second);
    return out + table(headings, rows) + "</section>\n";
}

}  // namespace wq::ctl
