// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "ctl/drop_in.h"
#include "ctl/fleet/fleet_show.h"
#include "ctl/json_values.h"
#include "evidence/promote.h"
#include "policy/policy_text.h"
#include "policy/quantity.h"

namespace wq::ctl {
namespace {

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
    if (rule.kind == FleetRule::Kind::use && !arm_named(rule.arm))
        return "this version does not know the scope " + rule.arm;
    return "";
}

bool are_of_one_table(const FleetRule& a, const FleetRule& b) {
    return a.machine == b.machine && a.series == b.series;
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

LearnedRule learned(const FleetRule& rule) {
    LearnedRule out{rule.target, {}, arm_named(rule.evidence.front().key.reference), {}};
    const bool better = rule.kind == FleetRule::Kind::use;
    if (better) {
        out.arm = arm_named(rule.arm);
        if (rule.strict) out.arm->strict = true;
        if (rule.evidence.front().key.reference_origin == "policy")
            out.notes.emplace_back("Against what a policy had set, not against the kernel's own setting:");
    }
    for (const FleetEntry& entry : rule.evidence) out.notes.push_back(evidence_line(entry, better));
    return out;
}

LearnedTable empty_table(const FleetRule& first) {
    const FleetMachine& m = first.machine;
    return {{{"arch", glob_or_null(m.arch)},
             {"cpu_vendor", glob_or_null(m.vendor)},
             {"llc_cores", or_null(m.llc_cores)},
             {"cores", or_null(m.cores)},
             {"kernel", first.series},
             {"cpu_model", glob_or_null(m.model)}},
            {}};
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
           "# counter; its spread is the deviation between hosts, and how many are\n"
           "# better or worse by their own evidence.\n";
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

}  // namespace

std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now) {
    const FleetRules found = promoted(entries, rate);
    std::vector<LearnedTable> tables;
    const FleetRule* last = nullptr;  // that was written
    std::size_t rules = 0;
    for (const FleetRule& rule : found.rules) {
        if (!why_not_written(rule).empty()) continue;
        if (last == nullptr || !are_of_one_table(*last, rule)) tables.push_back(empty_table(rule));
        tables.back().rules.push_back(learned(rule));
        last = &rule;
        rules++;
    }
    return drop_in("fleet", heading(entries, found, rules, rate, now), tables, now) + doubts(found) +
           unwritten(found) + unclear(found);
}

}  // namespace wq::ctl
