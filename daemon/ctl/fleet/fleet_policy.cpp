// SPDX-License-Identifier: LGPL-2.1-or-later
// `fleet policy`: the rules that pass as one policy drop-in. It decides everything: mode tune, the scopes of
// the rules (set first), `leave` for all other workqueues, and @default unmanaged where no rule moves it;
// where one does, a class that is left names the scope that it had. Of two patterns the narrower one comes
// first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "ctl/fleet/fleet.h"
#include "evidence/json_values.h"
#include "machine/workqueue.h"
#include "policy/policy.h"
#include "policy/policy_text.h"
#include "policy/quantity.h"
#include "policy/rule_warnings.h"
#include "targets/keys.h"

namespace wq::ctl {
namespace {

constexpr std::int64_t kRuleDays = 180;
constexpr std::size_t kMaxName = 200;  // bytes; a host table's name has at most 255

// Whether a table can name the hosts of RULE, and its scope. Without one of these conditions, the table would
// also match hosts of other kinds.
bool can_be_written(const FleetRule& rule) {
    const FleetMachine& machine = rule.key().machine;
    const std::string& kernel = rule.key().kernel;
    const Numbers numbers = leading_numbers(kernel);
    return !machine.arch.empty() && !machine.model.empty() && machine.llc_cores && machine.cores &&
           numbers.size() == 2 && fmt::format("{}", fmt::join(numbers, ".")) == kernel &&
           (rule.leave || arm_named(rule.key().candidate));
}

std::string evidence_line(const FleetEntry& entry, bool better) {
    const Pooled& p = entry.pooled;
    const PooledSide& side = better ? p.better : p.worse;
    return printable(fmt::format("{}, {}, {}: E {} ({} for the rule) by {} of {}, effect {}; spread {}",
                                 arms_text(entry.key), entry.key.counter, better ? "better" : "worse",
                                 e_text(side.log()), e_text(p.log_for_rule(side)), plural(p.pairs, "pair"),
                                 plural(p.hosts, "host"), effect_text(p), spread_text(p)));
}

std::string heading(const std::vector<FleetEntry>& entries, const FleetRules& found, std::size_t rules,
                    double rate, std::int64_t now) {
    std::int64_t latest = 0;
    for (const FleetEntry& entry : entries) latest = std::max(latest, entry.at);
    return fmt::format(
        "# wq-tuned's policy for the machines of a fleet: what their experiments found together. For\n"
        "# /etc/wq-tuned/wq-tuned.toml.d/NAME.toml; see wq-tuned.toml(5).\n"
        "#\n"
        "# Written {} by wq-tunectl {}.\n{}"
        "# Of {} questions, {} rule{} passed. At most {:g}% of such rules are wrong on average.\n"
        "#\n"
        "# Each rule has the evidence that it rests on; wq-tunectl-fleet(1) explains it.\n"
        "#\n"
        "# The scopes that are named here are set at once, compared with the kernel's setting\n"
        "# afterwards, and taken back where they regress. A disk that serves swap is left, or keeps its\n"
        "# scope. Nothing else is changed, except what follows @default where a table names its scope.\n"
        "# After the rules have expired, the rules of the other policy files decide, in mode tune.\n"
        "# [0-9]* stands for a number, and would match whatever follows its first digit.\n"
        "\n[daemon]\nmode = \"tune\"\n",
        utc_text(now), version(),
        latest > 0 ? fmt::format("# The latest pair of windows is of {}.\n", utc_text(latest)) : "",
        found.hypotheses, rules, rules == 1 ? "" : "s", rate * 100);
}

// The head of table number NUMBER: the machines of KEY.
std::string table_head(std::size_t number, const FleetKey& key) {
    const FleetMachine& m = key.machine;
    std::string name, when;
    for (const auto& [condition, value] :
         std::vector<std::pair<const char*, nlohmann::ordered_json>>{{"arch", glob_or_null(m.arch)},
                                                                     {"cpu_vendor", glob_or_null(m.vendor)},
                                                                     {"llc_cores", or_null(m.llc_cores)},
                                                                     {"cores", or_null(m.cores)},
                                                                     {"kernel", key.kernel},
                                                                     {"cpu_model", glob_or_null(m.model)}}) {
        if (value.is_null()) {
            when += fmt::format("# {} is not known, so there is no condition on it\n", condition);
            continue;
        }
        when += fmt::format("{} = {}\n", condition, toml_text(value));
        name += fmt::format("{}{} {}", name.empty() ? "" : ", ", condition,
                            value.is_string() ? value.get<std::string>() : value.dump());
    }
    name = fmt::format("fleet {}: {}", number, printable(name.substr(0, kMaxName)));
    return fmt::format("\n[[host]]\nname = {}\n\n[host.when]\n{}", toml_text(name), when);
}

// What RULE sets; empty: its class is left.
std::optional<Arm> arm_of(const FleetRule& rule) {
    if (rule.leave) return {};
    auto arm = arm_named(rule.key().candidate);
    if (rule.key().strict) arm->strict = true;
    return arm;
}

// DEFAULT_MOVES: there is a rule that moves @default.
std::string rule_text(const FleetRule& rule, bool default_moves, const std::string& expires) {
    const FleetKey& first = rule.evidence.front().key;
    std::string out = "\n";
    if (!rule.leave && first.reference_origin == "policy")
        out += "# Against what a policy had set, not against the kernel's own setting:\n";
    std::string evidence;
    for (const FleetEntry& entry : rule.evidence) {
        evidence = evidence_line(entry, !rule.leave);
        out += toml_comment(evidence) + "\n";
    }
    auto arm = arm_of(rule);
    if (first.kind == kDefaultTarget) {
        out += "[host.default_scope]\n";
        out += arm ? fmt::format("manage = true\nscope = \"{}\"\n", name_of(arm->scope)) : "manage = false\n";
    } else {
        const auto had = arm_named(first.reference);
        const bool stays = !arm && default_moves && had;
        if (stays) {
            arm = had;
            out += "# not \"leave\": it would follow @default; without evidence, it names disks with swap\n";
        }
        out += fmt::format("[[host.workqueue]]\nmatch = {}\nscope = \"{}\"\n",
                           toml_text(glob_of_kind(first.kind)), arm ? name_of(arm->scope) : "leave");
        if (arm && (arm->strict || (had && had->strict)))
            out += fmt::format("strict = {}\n", arm->strict.value_or(false));
        if (stays) return out + "hold = true\n" + expires;
    }
    return out + expires +
           fmt::format("evidence = {}\n", toml_text(printable(evidence.substr(0, kMaxEvidence / 2))));
}

// The table of RULES, which are for one kind of machine. The rule for @default comes first. If the pattern of
// class B also matches names of class A, then B has fewer characters other than `#` than A.
std::string table_text(std::size_t number, std::vector<FleetRule> rules, const std::string& expires) {
    const auto rank = [](const FleetRule& rule) {
        const std::string& kind = rule.key().kind;
        const auto letters = std::ranges::count_if(kind, [](char c) { return c != '#'; });
        return std::pair(kind != kDefaultTarget, -letters);
    };
    std::ranges::stable_sort(rules, {}, rank);
    const bool default_moves = rules.front().key().kind == kDefaultTarget && !rules.front().leave;
    std::string out = table_head(number, rules.front().key());
    for (const FleetRule& rule : rules) out += rule_text(rule, default_moves, expires);
    return out;
}

}  // namespace

std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now) {
    const FleetRules found = promoted(entries, rate);
    const std::string expires = fmt::format("expires = \"{:.10}\"\n", utc_text(now + kRuleDays * 86'400));
    std::vector<std::vector<FleetRule>> tables;
    std::size_t rules = 0;
    std::string unwritten;
    for (const FleetRule& rule : found.rules) {
        const FleetKey& key = rule.key();
        if (!can_be_written(rule)) {
            unwritten +=
                toml_comment(fmt::format("  {} on {}, kernel {}: {}", key.kind, machine_text(key.machine),
                                         key.kernel, evidence_line(rule.evidence.back(), !rule.leave))) +
                "\n";
            continue;
        }
        if (tables.empty() || tables.back().back().key().machine != key.machine ||
            tables.back().back().key().kernel != key.kernel)
            tables.emplace_back();
        tables.back().push_back(rule);
        rules++;
    }
    if (!unwritten.empty())
        unwritten.insert(
            0,
            "\n# Enough evidence, but the conditions of a policy cannot name these hosts, or this "
            "version not the scope:\n");
    std::string out = heading(entries, found, rules, rate, now);
    for (std::size_t i = 0; i < tables.size(); i++) out += table_text(i + 1, tables[i], expires);
    return out + "\n# Everything else:\n[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n" + expires +
           "\n[default_scope]\nmanage = false\n" + expires + unwritten;
}

}  // namespace wq::ctl
