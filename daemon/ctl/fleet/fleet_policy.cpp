// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "base/version.h"
#include "ctl/fleet/fleet_text.h"
#include "evidence/promote.h"
#include "model/policy.h"
#include "model/scope.h"
#include "model/workqueue.h"
#include "policy/glob.h"
#include "policy/number_range.h"
#include "policy/policy_text.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxModel = 96;  // bytes; a host table's name has at most 255

bool is_default(const FleetRule& rule) {
    return rule.target == kDefaultTarget;
}

// The scope of an arm: "smt" of "smt strict". Empty if this version does not know it.
std::optional<Scope> scope_of(std::string_view arm) {
    if (arm.ends_with(kStrictSuffix)) arm.remove_suffix(kStrictSuffix.size());
    return scope_named(arm);
}

bool is_strict(const FleetRule& rule) {
    return rule.strict || rule.arm.ends_with(kStrictSuffix);
}

bool was_strict(const FleetRule& rule) {
    return rule.evidence.front().key.reference.ends_with(kStrictSuffix);
}

// Why no table can be written for RULE; "" if it can be written. Without one of these conditions, the table
// would also match hosts of other kinds.
std::string why_not_written(const FleetRule& rule) {
    const FleetMachine& m = rule.machine;
    std::vector<std::string_view> unknown;
    if (m.arch.empty()) unknown.emplace_back("arch");
    if (m.model.empty()) unknown.emplace_back("cpu_model");
    if (!m.llc_cores) unknown.emplace_back("llc_cores");
    if (!m.cores) unknown.emplace_back("cores");
    const Numbers numbers = leading_numbers(rule.series);
    if (fmt::format("{}", fmt::join(numbers, ".")) != rule.series || numbers.size() != 2)
        unknown.emplace_back("kernel x.y");
    if (!unknown.empty()) return fmt::format("not known of these hosts: {}", fmt::join(unknown, ", "));
    if (rule.kind == FleetRule::Kind::use && !scope_of(rule.arm))
        return "this version does not know the scope " + rule.arm;
    return "";
}

bool are_of_one_table(const FleetRule& a, const FleetRule& b) {
    return a.machine == b.machine && a.series == b.series;
}

// For sorting narrower patterns first. If the pattern of class B also matches names of class A, then B has
// fewer characters other than `#` than A.
bool is_narrower(const FleetRule& a, const FleetRule& b) {
    const auto letters = [](const FleetRule& rule) {
        return std::ranges::count_if(rule.target, [](char c) { return c != '#'; });
    };
    return letters(a) > letters(b);
}

std::string evidence_line(const FleetEntry& entry, bool better) {
    const auto& [key, p, at, shards] = entry;
    return printable(fmt::format(
        "{}, {}, {}: E {} ({} for the rule) by {} pair{} of {} host{}, effect {}; spread {}", arms_text(key),
        key.counter, better ? "better" : "worse", e_text(better ? p.log_better() : p.log_worse()),
        e_text(better ? p.log_for_rule_better() : p.log_for_rule_worse()), count_text(p.pairs),
        p.pairs == 1 ? "" : "s", count_text(p.hosts), p.hosts == 1 ? "" : "s", effect_text(p),
        spread_text(p)));
}

std::string evidence_lines(const FleetRule& rule) {
    const bool better = rule.kind == FleetRule::Kind::use;
    std::string out = "\n";
    if (better && rule.evidence.front().key.reference_origin == "policy")
        out += "# Against what a policy had set, not against the kernel's own setting:\n";
    for (const FleetEntry& entry : rule.evidence) out += toml_comment(evidence_line(entry, better)) + "\n";
    return out;
}

std::string short_evidence(const FleetRule& rule) {
    const std::string last = evidence_line(rule.evidence.back(), rule.kind == FleetRule::Kind::use);
    return "the fleet: " + printable(last.substr(0, kMaxEvidence / 2));
}

std::string condition(const char* key, const Json& value) {
    return value.is_null()
               ? fmt::format("# {} is not known of these hosts, so there is no condition on it\n", key)
               : fmt::format("{} = {}\n", key, toml_text(value));
}

Json count_or_null(const std::optional<std::uint64_t>& count) {
    return count ? Json(*count) : Json();
}

std::string host_table(const FleetRule& first) {
    FleetMachine named = first.machine;
    named.model = printable(named.model.substr(0, kMaxModel));
    std::string out = fmt::format(
        "\n[[host]]\nname = {}\n\n[host.when]\n",
        toml_text(fmt::format("fleet: {}, kernel {}", printable(machine_text(named)), first.series)));
    out += condition("arch", glob_or_null(first.machine.arch));
    out += condition("cpu_vendor", glob_or_null(first.machine.vendor));
    out += condition("cpu_model", glob_or_null(first.machine.model));
    out += condition("llc_cores", count_or_null(first.machine.llc_cores));
    out += condition("cores", count_or_null(first.machine.cores));
    return out + condition("kernel", first.series);
}

std::string default_table(const FleetRule& rule) {
    const std::string table = evidence_lines(rule) + "[host.default_scope]\n";
    if (rule.kind == FleetRule::Kind::leave) return table + "manage = false\n";
    return table + fmt::format("manage = true\nscope = \"{}\"\n", name_of(*scope_of(rule.arm)));
}

// A workqueue with "leave" follows @default. If a rule moves @default to a scope that is worse for this
// class, the rule of the class must name its previous scope. "" if this is not the case.
std::string instead_of_leave(const FleetRule& rule, const FleetRule* moved) {
    if (moved == nullptr || moved->kind != FleetRule::Kind::use) return "";
    for (const FleetEntry& entry : rule.evidence) {
        const auto had = scope_of(entry.key.reference);
        if (had && scope_of(entry.key.candidate) == scope_of(moved->arm)) return std::string(name_of(*had));
    }
    return "";
}

std::string workqueue_rule(const FleetRule& rule, const FleetRule* moved) {
    std::string out = evidence_lines(rule);
    std::string scope = "leave";
    if (rule.kind == FleetRule::Kind::use) {
        scope = name_of(*scope_of(rule.arm));
    } else if (const auto had = instead_of_leave(rule, moved); !had.empty()) {
        out += "# not \"leave\": it would follow @default\n";
        scope = had;
    }
    out += fmt::format("[[host.workqueue]]\nmatch = {}\nscope = \"{}\"\n",
                       toml_text(glob_of_kind(rule.target)), scope);
    // `explain` shows this.
    out += fmt::format("evidence = {}\n", toml_text(short_evidence(rule)));
    if (rule.kind == FleetRule::Kind::use && (is_strict(rule) || was_strict(rule)))
        out += fmt::format("strict = {}\n", is_strict(rule));
    return out;
}

std::string heading(const std::vector<FleetEntry>& entries, const FleetRules& found, std::size_t rules,
                    double rate, std::int64_t now) {
    std::int64_t latest = 0;
    for (const FleetEntry& entry : entries) latest = std::max(latest, entry.at);
    std::string out =
        "# wq-tuned's policy for the machines of a fleet: what their experiments found together. For\n"
        "# /etc/wq-tuned/wq-tuned.toml.d/NAME.toml; see wq-tuned.toml(5).\n"
        "#\n";
    out += fmt::format("# Written {} by wq-tunectl {}.\n", utc_text(now), version());
    if (latest > 0) out += fmt::format("# The latest pair of windows is of {}.\n", utc_text(latest));
    out += fmt::format(
        "# Of {} questions, {} rule{} passed. At most {:g}% of such rules are wrong on average.\n",
        count_text(found.hypotheses), count_text(rules), rules == 1 ? "" : "s", rate * 100);
    return out +
           "#\n"
           "# Each rule has the evidence that it rests on. E is an e-value: chance alone reaches E in one of "
           "E\n"
           "# cases at most. The value for the rule leaves out the host with the most evidence. If hosts\n"
           "# differ, the votes of hosts also limit it. An effect is a mean of all pairs, of the cost of a\n"
           "# counter: below zero is better; its spread is the deviation between hosts, and how many are\n"
           "# better or worse by their own evidence.\n"
           "# [0-9]* stands for a number, and would match whatever follows its first digit.\n";
}

std::string why_no_rule(const FleetEntry& entry, const std::string& why, bool better) {
    return toml_comment(fmt::format("  {}, {}, on {}, kernel {}: {}", entry.key.kind, arms_text(entry.key),
                                    machine_text(entry.key.machine), entry.key.kernel, why)) +
           "\n" + toml_comment("    " + evidence_line(entry, better)) + "\n";
}

std::string doubts(const FleetRules& found) {
    std::string out;
    for (const auto& [entry, why] : found.doubts) out += why_no_rule(entry, why, true);
    return out.empty() ? "" : "\n# Better on the whole, but not a rule:\n" + out;
}

std::string unwritten(const FleetRules& found) {
    std::string out;
    for (const FleetRule& rule : found.rules)
        if (const std::string why = why_not_written(rule); !why.empty())
            out += why_no_rule(rule.evidence.back(), why, rule.kind == FleetRule::Kind::use);
    return out.empty() ? "" : "\n# Enough evidence, but not a rule:\n" + out;
}

std::string unclear(const FleetRules& found) {
    std::string out;
    for (const FleetEntry& entry : found.unclear)
        out += why_no_rule(entry, "it is not known what each host found",
                           entry.pooled.log_better() >= entry.pooled.log_worse());
    if (out.empty()) return "";
    return "\n# Left out, because merged lines lack some of hosts_better, hosts_worse, hosts_below,\n"
           "# hosts_above, top_better, top_worse and spread. Without these it is not known whether one host\n"
           "# makes the rule, nor how many hosts are worse:\n" +
           out;
}

// The rules from FIRST to LAST, which are for the same hosts.
std::string tables_of(std::vector<FleetRule>::iterator first, std::vector<FleetRule>::iterator last) {
    std::string out = host_table(*first);
    std::stable_sort(first, last, is_narrower);
    const auto moved = std::find_if(first, last, is_default);
    if (moved != last) out += default_table(*moved);
    for (auto rule = first; rule != last; ++rule)
        if (!is_default(*rule)) out += workqueue_rule(*rule, moved == last ? nullptr : &*moved);
    return out;
}

}  // namespace

std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now) {
    const FleetRules found = promoted(entries, rate);
    std::vector<FleetRule> rules;
    std::ranges::copy_if(found.rules, std::back_inserter(rules),
                         [](const FleetRule& rule) { return why_not_written(rule).empty(); });
    std::string out = heading(entries, found, rules.size(), rate, now);
    for (auto first = rules.begin(); first != rules.end();) {
        const auto last = std::find_if(
            first, rules.end(), [&](const FleetRule& rule) { return !are_of_one_table(*first, rule); });
        out += tables_of(first, last);
        first = last;
    }
    return out + doubts(found) + unwritten(found) + unclear(found);
}

}  // namespace wq::ctl
