// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/json_values.h"
#include "evidence/verdicts.h"
#include "machine/topology.h"

// Why a random order of all arms is a fair random choice for each pair
// ====================================================================
//
// evidence/comparison.cpp explains why a verdict is valid: a fair random choice decides which window of a
// pair is the candidate's. Two arms in random order are such a pair. With more arms, a round is a random
// order of all arms, and each pair is the reference's window and one candidate's. Take any order and swap the
// reference and that candidate: each order has exactly one such partner, and both have the same probability.
// So for any two places, and any places of the other arms, both assignments have probability 1/2. If the
// candidate has no effect, the swap changes no measured number, including those of the other arms. So given
// all sizes, both signs of the difference have probability 1/2. The e-value needs nothing else.
//
// Drift between the two windows adds noise but no bias. The pairs of two candidates share the reference's
// windows, so their verdicts depend on each other: alpha applies to each candidate and each side, and with n
// candidates without effect a verdict is wrong with probability 2 n alpha at most. Only past rounds decide
// which arms take part in a round, and the argument holds for any given past.

namespace wq::lab {

std::vector<std::size_t> random_order(std::size_t count, const Random& random) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; i--) std::swap(order[i - 1], order[random() % i]);
    return order;
}

nlohmann::ordered_json row_json(const char* name, const Row& row, bool is_reference,
                                const nlohmann::ordered_json& figures) {
    nlohmann::ordered_json out{
        {name, row.arm}, {"role", is_reference ? "reference" : "candidate"}, {"pools", or_null(row.pools)}};
    out.update(figures);
    if (is_reference) return out;
    const ArmResult& result = row.result;
    out["verdict"] = word_or_null(result.verdict);
    out["e_regressed"] = result.e_regressed;
    out["e_improved"] = result.e_improved;
    out["effect_percent"] = nullptr;
    if (result.effect) out["effect_percent"] = result.effect->percent;
    out["interval_percent"] = interval_or_null(result.effect.value_or(Effect{}));
    return out;
}

Rounds::Rounds(std::vector<Row> rows, const JudgeSettings& settings, ComparedCounter counter, bool all_pairs)
    : rows_(std::move(rows)), settings_(settings), counter_(std::move(counter)), all_pairs_(all_pairs) {
    counter_.tolerance = settings.tolerance;
}

bool Rounds::is_over() const {
    if (count_ >= settings_.max_pairs) return true;
    if (all_pairs_) return false;
    for (std::size_t arm = 0; arm < rows_.size(); arm++)
        if (!is_reference(arm) && rows_[arm].result.verdict.empty()) return false;
    return true;
}

std::vector<std::size_t> Rounds::next(const Random& random) const {
    if (is_over()) return {};
    std::vector<std::size_t> running;
    for (std::size_t arm = 0; arm < rows_.size(); arm++)
        if (all_pairs_ || rows_[arm].result.verdict.empty()) running.push_back(arm);
    std::vector<std::size_t> out;
    for (const std::size_t place : random_order(running.size(), random)) out.push_back(running[place]);
    return out;
}

// Brings the result of ARM up to date, unless it is a reference or has a verdict. REASON: it ends undecided;
// "" if it goes on.
void Rounds::conclude(std::size_t arm, const std::string& reason) {
    if (is_reference(arm)) return;
    ArmResult& out = rows_[arm].result;
    std::vector<double> differences;
    Comparison comparison({counter_});
    for (const PairValues& pair : pairs(arm)) {
        differences.push_back(log_ratio(counter_, pair));
        comparison.add({pair});
    }
    if (!differences.empty()) out.effect = effect_of(std::move(differences));
    if (!out.verdict.empty()) return;
    const Decision now = comparison.decide({settings_.alpha, 1, true});
    const bool undecided = now.judgement == Judgement::undecided;
    if (!undecided || !reason.empty()) out.verdict = name_of(now.judgement);
    if (undecided) out.reason = reason;
    out.pairs = now.pairs;
    out.e_regressed = evidence_of(now.log_worse);
    out.e_improved = evidence_of(now.log_better);
}

void Rounds::add(const std::map<std::size_t, Figures>& runs) {
    count_++;
    for (const auto& [arm, run] : runs) rows_.at(arm).runs.push_back(run);
    for (const auto& [arm, run] : runs) conclude(arm, count_ >= settings_.max_pairs ? kMaxPairsReason : "");
}

void Rounds::end(const std::string& reason) {
    for (std::size_t arm = 0; arm < rows_.size(); arm++) conclude(arm, reason);
}

std::vector<PairValues> Rounds::pairs(std::size_t arm) const {
    std::vector<PairValues> out;
    const auto& references = rows_[rows_.at(arm).reference].runs;
    for (const Figures& run : rows_[arm].runs) out.push_back({references[out.size()].value, run.value});
    return out;
}

std::string Rounds::progress() const {
    std::string out = fmt::format("round {} of {}", count_ + 1, settings_.max_pairs);
    const char* before = "; ";
    for (std::size_t arm = 0; arm < rows_.size() && count_ > 0; arm++) {
        const Row& row = rows_[arm];
        if (is_reference(arm)) continue;
        out +=
            fmt::format("{}{}{}{} {}{}{}", before, row.load, row.load.empty() ? "" : " ", printable(row.arm),
                        effect_text(Effect{row.result.effect.value_or(Effect{}).percent, {}}),
                        row.result.verdict.empty() ? "" : " ", row.result.verdict);
        before = ", ";
    }
    return out;
}

Summary summary_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    return {median(values), values.front(), values.back()};
}

namespace {

constexpr std::int64_t kJump = 500'000'000;  // ns

std::string what_changed(const Conditions& before, const Conditions& after) {
    if (before.cpus != after.cpus) return "CPUs came or went";
    if (std::llabs(after.suspended - before.suspended) > kJump) return "the machine was suspended";
    return "";
}

}  // namespace

Conditions conditions_of(const Paths& paths) {
    return {time_suspended(), cpu_state(paths)};
}

Status run_rounds(Rounds& rounds, unsigned warm_ups, const Edges& edges) {
    if (auto begun = edges.begin(); !begun) return begun;
    for (unsigned i = 0; i < warm_ups; i++) {
        if (auto switched = i == 0 ? edges.switch_to(0) : Status{}; !switched) return switched;
        if (const auto run = edges.measure(0); !run) return tl::unexpected(run.error());
    }
    unsigned dropped = 0;
    for (auto order = rounds.next(edges.random); !order.empty(); order = rounds.next(edges.random)) {
        edges.progress(rounds.progress());
        const Conditions before = edges.conditions();
        std::map<std::size_t, Figures> runs;
        for (const std::size_t arm : order) {
            if (auto switched = edges.switch_to(arm); !switched) return switched;
            const auto run = edges.measure(arm);
            if (!run) return tl::unexpected(run.error());
            runs[arm] = *run;
        }
        if (const std::string why = what_changed(before, edges.conditions()); !why.empty()) {
            rounds.drop(why);
            if (++dropped == kMostDropped)
                return fail(fmt::format("{} rounds in a row were dropped: {}", dropped, why));
            continue;
        }
        // A round whose last arm an external writer has replaced must not count.
        if (auto ours = edges.check(); !ours) return ours;
        dropped = 0;
        rounds.add(runs);
    }
    return edges.check();
}

unsigned count_kworkers(const Paths& paths) {
    unsigned count = 0;
    for (const std::string& name : names_or_none(paths.proc())) {
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto comm = read_file(paths.proc() + "/" + name + "/comm");  // it may have ended
        if (comm && comm->starts_with("kworker/u")) count++;
    }
    return count;
}

}  // namespace wq::lab
