// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_plan.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "ctl/render/progress.h"
#include "ctl/report/report_page.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// A word of the daemon's status; "-" where it has none.
std::string word(const json& target, const char* key) {
    const auto found = target.find(key);
    return found != target.end() && found->is_string() ? found->get<std::string>() : "-";
}

std::map<std::string, const json*> targets_of(const json& status) {
    std::map<std::string, const json*> out;
    if (!status.is_object() || !status.contains("targets")) return out;
    for (const json& target : status["targets"])
        if (target.is_object()) out[word(target, "name")] = &target;
    return out;
}

std::string cell(const char* label, const std::string& html) {
    return fmt::format("<td data-label=\"{}\">{}</td>", label, html);
}

std::string quiet(const std::string& text) {
    return text.empty() ? "" : fmt::format("<span class=\"quiet\">{}</span>", escape(text));
}

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
    const json trial = target->value("trial", json(nullptr));
    return cell("Baseline", escape(word(*target, "baseline"))) +
           cell("State",
                escape(word(*target, "state")) +
                    quiet(trial.is_object() ? "trial: " + progress_text(trial) : word(*target, "reason")));
}

std::string row(const PlanLine& line) {
    const Workqueue& target = line.target;
    return cell("Target", fmt::format("<code>{}</code>", escape(target.name)) +
                              quiet(target.kind == Kind::unbound ? "" : std::string(name_of(target.kind)))) +
           cell("Scope", escape(target.scope.word)) +
           cell("Effective", target.scope.effective ? std::string(name_of(*target.scope.effective)) : "") +
           cell("Planned", line.planned ? std::string(name_of(*line.planned)) : "") +
           cell("Action", std::string(name_of(line.action))) + cell("Candidates", candidates_html(line)) +
           cell("Reason", escape(line.reason) + quiet(line.rule ? line.rule->text() : ""));
}

}  // namespace

std::string plan_html(const std::vector<PlanLine>& plan, const json& status) {
    const auto targets = targets_of(status);
    std::string out = "<section id=\"plan\">\n<h2>Plan</h2>\n";
    if (plan.empty()) return out + "<p>There is no workqueue with an affinity scope here.</p>\n</section>\n";
    out +=
        "<p>What each target has and would be given, and why. Candidates are scopes with different pods, "
        "each with "
        "its pools \u00d7 cores per pool.</p>\n<div class=\"wide\"><table class=\"cards\">\n<thead><tr>";
    for (const char* name : {"Target", "Scope", "Effective", "Planned", "Action", "Candidates", "Reason"})
        out += fmt::format("<th scope=\"col\">{}</th>", name);
    if (!targets.empty()) out += "<th scope=\"col\">Baseline</th><th scope=\"col\">State</th>";
    out += "</tr></thead>\n<tbody>\n";
    for (const PlanLine& line : plan) {
        const auto known = targets.find(line.target.name);
        out += "<tr>" + row(line);
        if (!targets.empty()) out += state_cells(known == targets.end() ? nullptr : known->second);
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace wq::ctl
