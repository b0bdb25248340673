// SPDX-License-Identifier: LGPL-2.1-or-later
// The result and the plan of a report.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/report/report.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

constexpr std::size_t kMostNamed = 4;    // targets in the first sentences
constexpr const char* kAnyTarget = "*";  // the only target of a source without workqueues

// The order of the page: improved, regressed, undecided, cut off.
constexpr std::size_t kDecided = 2;  // the first of them
constexpr std::size_t kCutOff = 3;

// The targets in a daemon's status by name.
using StatusTargets = std::map<std::string, const json*>;

// Empty if STATUS is null. The pointers are valid while STATUS exists.
StatusTargets targets_of(const json& status) {
    StatusTargets out;
    if (!status.is_object() || !status.contains("targets")) return out;
    for (const json& target : status["targets"])
        if (target.is_object()) out[text_in(target, "name", "-")] = &target;
    return out;
}

// The setting in a target's files: "default (cache)", "smt, strict"; "" if it has none.
std::string setting_text(const Workqueue& target) {
    std::string out = target.scope.word;
    if (out == "default" && target.scope.effective)
        out += fmt::format(" ({})", name_of(*target.scope.effective));
    if (target.strict == true) out += ", strict";
    return out;
}

// NAMES as HTML: the first few, with the others folded.
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

std::string strong(std::size_t number) {
    return fmt::format("<strong>{}</strong> ", number);
}

// The final result for one target and two arms.
struct Row {
    const VerdictRecord* trial;
    std::size_t place;
};

class ResultSection {
  public:
    explicit ResultSection(const ResultInput& input) : input_(input), targets_(targets_of(input.status)) {
        collect();
    }

    [[nodiscard]] std::string html() const { return section("result", "Result", worth() + sentences()); }

  private:
    // Takes the last judged comparison of each target and arms, or the last one if none was judged. Sorts
    // them, with the largest improvement first.
    void collect() {
        std::map<std::tuple<std::string, std::string, std::string>, Row> last;
        for (const VerdictRecord& r : input_.trials) {
            const Row row{&r, r.judged ? static_cast<std::size_t>(r.outcome) : kCutOff};
            const auto [place, is_new] = last.try_emplace({r.target, r.key.reference, r.key.candidate}, row);
            if (!is_new && (r.judged || !place->second.trial->judged)) place->second = row;
        }
        for (const auto& [arms, row] : last) rows_.push_back(row);
        std::ranges::stable_sort(rows_, {}, [](const Row& row) {
            const VerdictRecord& r = *row.trial;
            const double percent = r.standing.effect.percent;
            return std::pair(row.place, r.outcome == Judgement::regressed ? -percent : percent);
        });
    }

    // Like the first lines of `status`.
    [[nodiscard]] std::string worth() const {
        if (!input_.status.is_object()) return "";
        std::string out;
        for (const std::string& line : worth_lines(input_.status, ::time(nullptr)))
            out += "<p>" + escape(line) + "</p>\n";
        return out;
    }

    // The summary in a few lines.
    [[nodiscard]] std::string sentences() const {
        std::string out;
        for (std::size_t place = 0; place <= kCutOff; place++) out += sentence_about(place);
        if (out.empty()) out = "<li>Nothing was compared here yet.</li>\n";
        return "<ul class=\"result\">\n" + out + on_trial() + planned() + "</ul>\n";
    }

    [[nodiscard]] std::string sentence_about(std::size_t place) const {
        std::vector<const Row*> these;
        for (const Row& row : rows_)
            if (row.place == place) these.push_back(&row);
        if (these.empty()) return "";
        const std::string head = "<li>" + strong(these.size()) + verdict_html(*these[0]->trial);
        if (place >= kDecided) return head + "</li>\n";
        if (these.size() == 1) return head + ": " + told(*these[0]) + "</li>\n";
        std::string list;
        for (std::size_t i = 0; i < std::min(these.size(), kMostNamed); i++)
            list += "<li>" + told(*these[i]) + "</li>\n";
        if (these.size() > kMostNamed)
            list += fmt::format("<li>and {} more</li>\n", these.size() - kMostNamed);
        return head + ":\n<ul>\n" + list + "</ul></li>\n";
    }

    // Returns "kcryptd-1 latency 5.9% better with smt in place of cache (in force now)".
    [[nodiscard]] std::string told(const Row& row) const {
        const VerdictRecord& r = *row.trial;
        return fmt::format("{} <strong>{}</strong> with {} in place of {} ({})", code(r.target),
                           escape(effect_text(r.standing)), code(r.key.candidate), code(r.key.reference),
                           arm_of(r.target) == r.key.candidate ? "in force now" : "not in force now");
    }

    [[nodiscard]] std::string on_trial() const {
        std::string out;
        std::vector<std::string> waiting;
        for (const auto& [name, target] : targets_) {
            const json trial = target->value("comparison", json(nullptr));
            if (!trial.is_object() || trial.value("course", "") != "dense") continue;
            const auto pairs = trial.value("pairs", 0U);
            if (pairs == 0)
                waiting.push_back(code(name));
            else
                out += fmt::format("<li><strong>Compared now</strong>: {}: {}, {} of {} pairs.</li>\n",
                                   code(name), escape(odds_text(trial)), pairs, trial.value("max_pairs", 0U));
        }
        if (waiting.empty()) return out;
        const std::size_t more = waiting.size() - std::min(waiting.size(), kMostNamed);
        waiting.resize(waiting.size() - more);
        return out + fmt::format("<li><strong>No pair yet</strong>: {}{}.</li>\n", fmt::join(waiting, ", "),
                                 more == 0 ? "" : fmt::format(" and {} more", more));
    }

    // Returns "would change 2 of 6 targets: cache -> smt", only from the plan.
    [[nodiscard]] std::string planned() const {
        std::map<std::string, std::size_t> changes;
        std::size_t changed = 0;
        for (const PlanLine& line : input_.plan) {
            if (line.action == Action::none || line.action == Action::skip || !line.planned) continue;
            changes[fmt::format("{} → {}", code(line.now ? name_of(*line.now) : "?"),
                                code(name_of(*line.planned)))]++;
            changed++;
        }
        if (input_.plan.empty()) return "";
        std::string which;
        for (const auto& [change, n] : changes)
            which +=
                (which.empty() ? ": " : ", ") + change + (changes.size() > 1 ? fmt::format(" ({})", n) : "");
        if (input_.plan.size() == 1 && input_.plan.front().target.name == kAnyTarget)
            return "<li>The source only describes a machine. There, the plan " +
                   (changed == 0 ? "keeps the kernel&#39;s setting for an unbound workqueue"
                                 : "would change an unbound workqueue" + which) +
                   ".</li>\n";
        if (changed == 0) return "<li>The <a href=\"#plan\">plan</a> changes nothing.</li>\n";
        return fmt::format(
            "<li>The <a href=\"#plan\">plan</a>, which does not use results, would change {} of "
            "{}{}.</li>\n",
            changed, plural(input_.plan.size(), "target"), which);
    }

    // The arm in a target's files; "" if not known.
    [[nodiscard]] std::string arm_of(const std::string& target) const {
        const auto line =
            std::ranges::find(input_.plan, target, [](const PlanLine& one) { return one.target.name; });
        if (line == input_.plan.end() || !line->target.scope.effective) return "";
        return std::string(name_of(*line->target.scope.effective)) +
               (line->target.strict == true ? " strict" : "");
    }

    const ResultInput& input_;
    StatusTargets targets_;
    std::vector<Row> rows_;
};

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

// All cells of a row but the first. The last two are what the daemon says, if it was asked.
Cells plan_cells(const PlanLine& line, const StatusTargets& targets) {
    const Workqueue& target = line.target;
    Cells out{escape(setting_text(target)) +
                  quiet(target.kind == Kind::unbound ? "" : std::string(name_of(target.kind))),
              line.planned ? std::string(name_of(*line.planned)) : "",
              std::string(name_of(line.action)),
              prose(line.reason) + quiet(line.rule ? line.rule->text() : ""),
              candidates_html(line),
              "",
              ""};
    const auto known = targets.find(target.name);
    if (known == targets.end()) return out;
    const json& about = *known->second;
    const json comparison = about.value("comparison", json(nullptr));
    out[5] = escape(text_in(about, "baseline", "-"));
    out[6] = escape(text_in(about, "state", "-")) +
             quiet(comparison.is_object() ? odds_text(comparison) : text_in(about, "reason", "-"));
    return out;
}

}  // namespace

std::string result_html(const ResultInput& input) {
    return ResultSection(input).html();
}

std::string plan_html(const std::vector<PlanLine>& plan, const json& status) {
    if (plan.empty())
        return section("plan", "Plan", "<p>There is no workqueue with an affinity scope here.</p>\n");
    const StatusTargets targets = targets_of(status);
    Groups<std::pair<int, Cells>> groups;  // what is to be written comes first, what is skipped last
    for (const PlanLine& line : plan)
        groups.add(line.target.name, {line.action == Action::skip   ? 2
                                      : line.action == Action::none ? 1
                                                                    : 0,
                                      plan_cells(line, targets)});
    std::ranges::stable_sort(groups.groups(), {}, [](const auto& group) { return group.cells.first; });
    std::vector<Column> columns = {{"Target", "names"}, {"Now", "short"}, {"Planned"},
                                   {"Action"},          {"Reason"},       {"Candidates", "short"}};
    if (!targets.empty()) columns.insert(columns.end(), {{"Baseline"}, {"State"}});
    std::vector<Cells> rows;
    for (const auto& [cells, names] : groups.groups()) {
        rows.push_back(cells.second);
        rows.back().insert(rows.back().begin(),
                           (names.size() == 1 ? "" : strong(names.size())) + names_html(names));
    }
    return section("plan", "Plan",
                   "<p>What each target has now, what is planned for it, and why. Targets that differ in "
                   "their names alone share a row. Candidates are the scopes that make different pools: "
                   "number of pools \u00d7 cores of each.</p>\n" +
                       table(columns, rows));
}

}  // namespace wq::ctl
