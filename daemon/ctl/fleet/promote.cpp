// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet.h"

// Which evidence becomes a rule
// =============================
//
// Hypotheses. Evidence is pooled over everything that the conditions of a host table cannot distinguish. For
// each such sum there are two questions: is the candidate better (unless its counter is a guard), and is it
// worse? All of them together go through e-BH, so at most the promised share of the rules is wrong, for any
// number of classes, kinds and candidates. Sums of fewer than kLeastHosts hosts are left out (they cannot
// pass, and the number of hosts does not depend on their results), and sums without the results of single
// hosts. What counts is Pooled::log_for_rule().
//
// Vetoes. A mean over hosts is not what each host gets. A comparison makes no rule for its candidate if, by
// any of its counters or guards,
//   - more than 5% of the hosts, and more than one, are worse by their own evidence, or
//   - a kind of machine (a row of `fleet show`) has a pooled e-value of "worse" above 1 without its largest
//     share, or
//   - a sum of two hosts or more has no results of single hosts, because a merged line lacks them.
// If the reference is the kernel's setting, this also holds for the candidate against any other reference. A
// veto sets the e-value to 0 before e-BH: a lowered e-value is still one.
//
// From arm to arm. The rule names the candidate that is better than the kernel's setting, of several the one
// with the most evidence; or, if another is better than that arm where a policy of ours had set it, that one,
// and so on. If none is better than the kernel's setting, but one is better than an arm that a policy set,
// the rule names this one. If none is better, and one is worse than the kernel's setting, the rule is
// `leave`.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace wq {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();  // ln 0

void reduce_to_row(FleetKey& key) {
    const FleetKey all = key;
    reduce_to_question(key);
    key.machine.packages = all.machine.packages;
    key.kernel = all.kernel;
}

// Keeps guards apart: what hosts measured as a guard is no evidence for a candidate, even if other hosts
// judge by this counter.
void reduce_to_hypothesis(FleetKey& key) {
    const bool guard = key.guard;
    reduce_to_question(key);
    key.guard = guard;
}

// The same candidate against the same reference, by any counter.
FleetKey comparison_of(FleetKey key) {
    reduce_to_question(key);
    key.counter.clear();
    return key;
}

// The same candidate against the kernel's setting, for any such setting.
FleetKey candidate_of(const FleetKey& key) {
    FleetKey out = comparison_of(key);
    out.reference.clear();
    out.reference_origin.clear();
    return out;
}

FleetKey class_key_of(const FleetKey& key) {
    FleetKey out = candidate_of(key);
    out.candidate.clear();
    out.strict = false;
    return out;
}

// ENTRIES with keys that REDUCE made coarser; entries with equal keys are added up.
std::vector<FleetEntry> regrouped(const std::vector<FleetEntry>& entries, void (*reduce)(FleetKey& key)) {
    std::map<FleetKey, FleetEntry> sums;
    for (const FleetEntry& entry : entries) {
        FleetKey key = entry.key;
        reduce(key);
        sums[key].add(entry);
        sums[key].key = key;
    }
    std::vector<FleetEntry> out;
    for (auto& [key, sum] : sums) out.push_back(std::move(sum));
    return out;
}

// The comparisons, and the candidates against any reference, that cannot be promoted.
std::set<FleetKey> vetoes_of(const std::vector<FleetEntry>& entries) {
    std::set<FleetKey> out;
    const auto add = [&](const FleetKey& key) {
        out.insert(comparison_of(key));
        if (key.reference_origin == "kernel") out.insert(candidate_of(key));
    };
    for (const auto& [key, p, at, shards] : regrouped(entries, reduce_to_question))
        if (are_many(p.worse.hosts, p.hosts) || (!p.by_host && p.hosts > 1)) add(key);
    for (const auto& [key, p, at, shards] : shown_rows(entries))
        if (p.by_host && p.worse.log_without_one() > 0) add(key);
    return out;
}

// A question about a sum.
struct Hypothesis {
    const FleetEntry* sum = nullptr;
    bool worse = false;
    double log = 0;  // ln of its e-value
};

std::vector<Hypothesis> hypotheses_of(const std::vector<FleetEntry>& sums, const std::set<FleetKey>& vetoes) {
    std::vector<Hypothesis> out;
    for (const FleetEntry& sum : sums) {
        const auto& [key, p, at, shards] = sum;
        if (p.hosts < kLeastHosts || !p.by_host) continue;
        out.push_back({&sum, true, p.log_for_rule(p.worse)});
        if (key.guard) continue;
        const bool vetoed = vetoes.contains(comparison_of(key)) || vetoes.contains(candidate_of(key));
        out.push_back({&sum, false, vetoed ? kNothing : p.log_for_rule(p.better)});
    }
    return out;
}

// The sums that passed, for one class of targets on one kind of machine.
struct Passed {
    std::vector<const FleetEntry*> better;
    std::vector<const FleetEntry*> worse;
};

bool is_of_kernel(const FleetEntry* entry) {
    return entry->key.reference_origin == "kernel";
}

std::optional<FleetRule> rule_of(Passed passed) {
    auto& better = passed.better;
    auto& worse = passed.worse;
    std::erase_if(worse, [](const FleetEntry* entry) { return !is_of_kernel(entry); });
    std::erase_if(better, [&](const FleetEntry* entry) {
        return std::ranges::any_of(worse, [&](auto* w) { return w->key.candidate == entry->key.candidate; });
    });
    FleetRule out;
    const auto add_best = [&](auto pass) {
        const FleetEntry* best = nullptr;
        const auto log = [](const FleetEntry* each) {
            return each->pooled.log_for_rule(each->pooled.better);
        };
        for (const FleetEntry* each : better)
            if (pass(each) && (best == nullptr || log(each) > log(best))) best = each;
        if (best != nullptr) out.evidence.push_back(*best);
        return best != nullptr;
    };
    if (!add_best(is_of_kernel)) add_best([](const FleetEntry*) { return true; });
    if (out.evidence.empty()) {
        for (const FleetEntry* entry : worse) out.evidence.push_back(*entry);
        out.leave = true;
        return worse.empty() ? std::nullopt : std::optional(out);
    }
    std::set<std::string> been = {out.key().reference, out.key().candidate};
    while (add_best([&](const FleetEntry* each) {
        return each->key.reference == out.key().candidate && !is_of_kernel(each) &&
               !been.contains(each->key.candidate);
    }))
        been.insert(out.key().candidate);
    return out;
}

}  // namespace

std::vector<FleetEntry> shown_rows(const std::vector<FleetEntry>& entries) {
    return regrouped(entries, reduce_to_row);
}

FleetRules promoted(const std::vector<FleetEntry>& entries, double rate) {
    const auto sums = regrouped(entries, reduce_to_hypothesis);
    const auto hypotheses = hypotheses_of(sums, vetoes_of(entries));
    std::vector<double> logs;
    for (const Hypothesis& h : hypotheses) logs.push_back(h.log);
    const auto passes = e_bh(logs, rate);
    FleetRules out;
    out.hypotheses = hypotheses.size();
    std::map<FleetKey, Passed> classes;
    for (std::size_t i = 0; i < hypotheses.size(); i++) {
        if (!passes[i]) continue;
        Passed& passed = classes[class_key_of(hypotheses[i].sum->key)];
        (hypotheses[i].worse ? passed.worse : passed.better).push_back(hypotheses[i].sum);
    }
    for (const auto& [key, passed] : classes)
        if (auto rule = rule_of(passed)) out.rules.push_back(std::move(*rule));
    return out;
}

std::vector<bool> e_bh(const std::vector<double>& logs, double rate) {
    std::vector<double> sorted = logs;
    std::ranges::sort(sorted, std::greater<>());
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sorted.size(); i++) {
        const double asked =
            std::log(static_cast<double>(sorted.size())) - std::log(rate * static_cast<double>(i + 1));
        if (sorted[i] >= asked) least = sorted[i];
    }
    std::vector<bool> out;
    for (const double log : logs) out.push_back(log >= least);
    return out;
}

}  // namespace wq
