// SPDX-License-Identifier: LGPL-2.1-or-later
// `fleet merge|show|policy FILE...`: pools the ledgers of many hosts. docs/fleet.md describes it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/version.h"
#include "ctl/command.h"
#include "ctl/fleet/fleet_merge.h"
#include "ctl/fleet/learned.h"
#include "ctl/fleet/ledgers.h"
#include "ctl/fleet/promote.h"
#include "ctl/json_values.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/comparison.h"
#include "policy/policy_text.h"
#include "policy/quantity.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

// "1,234,567".
std::string count_text(std::uint64_t count) {
    return fmt::format("{}", fmt::group_digits(count));
}

// "AMD EPYC 9654, x86_64, 96 cores, 8 per LLC, 2 packages"; unknown parts are left out.
std::string machine_text(const FleetMachine& m) {
    std::vector<std::string> parts;
    parts.push_back(!m.model.empty() ? m.model : !m.vendor.empty() ? m.vendor : "CPU not known");
    if (!m.arch.empty()) parts.push_back(m.arch);
    if (m.cores) parts.push_back(plural(*m.cores, "core"));
    if (m.llc_cores) parts.push_back(fmt::format("{} per LLC", *m.llc_cores));
    if (m.packages) parts.push_back(plural(*m.packages, "package"));
    return fmt::format("{}", fmt::join(parts, ", "));
}

// "cache -> smt strict", or "smt (policy) -> cpu" if a policy had set the reference.
std::string arms_text(const FleetKey& key) {
    const char* origin = key.reference_origin == "policy" ? " (policy)" : "";
    const bool named = key.candidate.ends_with(kStrictSuffix);
    return fmt::format("{}{} -> {}{}", key.reference, origin, key.candidate,
                       key.strict && !named ? " strict" : "");
}

// "2.3% better".
std::string effect_text(const Pooled& pooled) {
    return pooled.pairs == 0 ? "-" : wq::effect_text(Effect{pooled.effect_percent(), {}});
}

// ---- fleet show

// What `fleet show` tells of its rows.
struct View {
    const char* none;  // if there are no rows
    std::vector<std::string> header;
    std::vector<std::string> (*cells)(const FleetEntry& row);
    void (*add)(Json& line, const FleetEntry& row);  // adds what --json has beside the keys of the row
    std::string note;
};

const View kComparisons = {
    "No host has measured anything yet.\n",
    {"CLASS", "ARMS", "COUNTER", "HOSTS", "PAIRS", "EFFECT", "E BETTER", "E WORSE", "SPREAD"},
    [](const FleetEntry& row) -> std::vector<std::string> {
        const Pooled& p = row.pooled;
        return {row.key.kind,           arms_text(row.key),    row.key.counter,
                count_text(p.hosts),    count_text(p.pairs),   effect_text(p),
                e_text(p.better.log()), e_text(p.worse.log()), spread_text(p)};
    },
    [](Json& line, const FleetEntry& row) {
        const Pooled& p = row.pooled;
        line["pairs"] = p.pairs;
        line["log_e_better"] = p.better.log();
        line["log_e_worse"] = p.worse.log();
        line["effect_percent"] = p.pairs == 0 ? Json() : Json(p.effect_percent());
        line["hosts_better"] = p.by_host ? Json(p.better.hosts) : Json();
        line["hosts_worse"] = p.by_host ? Json(p.worse.hosts) : Json();
    },
    "\nEffects are means over all pairs, of the cost of the counter. E is the evidence of all hosts "
    "together; chance alone reaches E in one of E cases at most. SPREAD has the deviation between hosts that "
    "noise does not explain, and how many hosts are better or worse by evidence of 20 or more of their own."};

// Of --worth: scopes in force instead of the kernel's.
const View kWorth = {
    "No host has measured a scope that it runs on.\n",
    {"CLASS", "ARMS", "COUNTER", "HOSTS", "ON IT", "PAIRS", "EFFECT"},
    [](const FleetEntry& row) -> std::vector<std::string> {
        const Pooled& p = row.pooled;
        const Effect effect = mean_effect_of(p.after);
        return {row.key.kind,
                arms_text(row.key),
                row.key.counter,
                count_text(p.hosts),
                p.by_host ? count_text(p.hosts_after) : "not known",
                count_text(p.after.pairs),
                effect.interval ? wq::effect_text(effect) : "not yet measured"};
    },
    [](Json& line, const FleetEntry& row) {
        const Effect effect = mean_effect_of(row.pooled.after);
        line["hosts_on_it"] = row.pooled.by_host ? Json(row.pooled.hosts_after) : Json();
        line["pairs"] = row.pooled.after.pairs;
        line["effect_percent"] = effect.interval ? Json(effect.percent) : Json();
        line["interval_percent"] = interval_or_null(effect);
    },
    fmt::format(
        "\nHOSTS compared the arms; ON IT are those that measured them while the candidate was in force. "
        "PAIRS are theirs since then: these did not bring it there. EFFECT is their mean, of the cost of the "
        "counter, and its 95% interval on these hosts; with fewer than {} pairs it is not yet measured.",
        kLeastForMean)};

// A heading for each kind of machine and kernel of ROWS, and a table of its rows.
std::string shown_tables(const View& view, const std::vector<FleetEntry>& rows) {
    if (rows.empty()) return view.none;
    std::string out;
    std::optional<Table> table;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const FleetKey& key = rows[i].key;
        if (i == 0 || rows[i - 1].key.machine != key.machine || rows[i - 1].key.kernel != key.kernel) {
            if (table) out += table->text() + "\n";
            out += wrapped(printable(machine_text(key.machine))) + wrapped("kernel " + printable(key.kernel));
            table.emplace(view.header);
        }
        table->add(view.cells(rows[i]));
    }
    return out + table->text() + wrapped(view.note);
}

// A line of JSON for each of ROWS. docs/json.md describes it.
std::string shown_lines(const View& view, const std::vector<FleetEntry>& rows) {
    std::string out;
    for (const FleetEntry& row : rows) {
        const Json whole = to_json(FleetLine{row, "", {}});
        Json line;
        for (const char* name : {"machine", "kernel", "class", "reference", "reference_origin", "candidate",
                                 "strict", "counter", "hosts"})
            line[name] = whole.at(name);
        view.add(line, row);
        out += json_text(line) + "\n";
    }
    return out;
}

// ---- fleet policy

// Why no table can be written for RULE; "" if it can be written. Without one of these conditions, the table
// would also match hosts of other kinds.
std::string why_not_written(const FleetRule& rule) {
    const FleetMachine& m = rule.key().machine;
    std::vector<std::string_view> unknown;
    if (m.arch.empty()) unknown.emplace_back("arch");
    if (m.model.empty()) unknown.emplace_back("cpu_model");
    if (!m.llc_cores) unknown.emplace_back("llc_cores");
    if (!m.cores) unknown.emplace_back("cores");
    const Numbers numbers = leading_numbers(rule.key().kernel);
    if (fmt::format("{}", fmt::join(numbers, ".")) != rule.key().kernel || numbers.size() != 2)
        unknown.emplace_back("kernel x.y");
    if (!unknown.empty()) return fmt::format("not known of these hosts: {}", fmt::join(unknown, ", "));
    if (!rule.leave && !arm_named(rule.key().candidate))
        return "this version does not know the scope " + rule.key().candidate;
    return "";
}

std::string evidence_line(const FleetEntry& entry, bool better) {
    const auto& [key, p, at, shards] = entry;
    const PooledSide& side = better ? p.better : p.worse;
    return printable(
        fmt::format("{}, {}, {}: E {} ({} for the rule) by {} pair{} of {} host{}, effect {}; spread {}",
                    arms_text(key), key.counter, better ? "better" : "worse", e_text(side.log()),
                    e_text(p.log_for_rule(side)), count_text(p.pairs), p.pairs == 1 ? "" : "s",
                    count_text(p.hosts), p.hosts == 1 ? "" : "s", effect_text(p), spread_text(p)));
}

LearnedRule learned(const FleetRule& rule) {
    const FleetKey& first = rule.evidence.front().key;
    LearnedRule out{first.kind, {}, arm_named(first.reference), {}};
    if (!rule.leave) {
        out.arm = arm_named(rule.key().candidate);
        if (rule.key().strict) out.arm->strict = true;
        if (first.reference_origin == "policy")
            out.notes.emplace_back("Against what a policy had set, not against the kernel's own setting:");
    }
    for (const FleetEntry& entry : rule.evidence) out.notes.push_back(evidence_line(entry, !rule.leave));
    return out;
}

LearnedTable empty_table(const FleetKey& key) {
    const FleetMachine& m = key.machine;
    return {{{"arch", glob_or_null(m.arch)},
             {"cpu_vendor", glob_or_null(m.vendor)},
             {"llc_cores", or_null(m.llc_cores)},
             {"cores", or_null(m.cores)},
             {"kernel", key.kernel},
             {"cpu_model", glob_or_null(m.model)}},
            {}};
}

std::string policy_heading(const std::vector<FleetEntry>& entries, const FleetRules& found, std::size_t rules,
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

// A sum that makes no rule, as comments.
std::string unmade(const FleetEntry& entry, const std::string& why, bool better) {
    return toml_comment(fmt::format("  {}, {}, on {}, kernel {}: {}", entry.key.kind, arms_text(entry.key),
                                    machine_text(entry.key.machine), entry.key.kernel, why)) +
           "\n" + toml_comment("    " + evidence_line(entry, better)) + "\n";
}

// The rules that pass at RATE (ctl/fleet/promote.h) as one policy drop-in: a host table for each kind of
// machine that was measured, with the evidence of each rule as comments. NOW: s since 1970.
std::string fleet_policy(const std::vector<FleetEntry>& entries, double rate, std::int64_t now) {
    const FleetRules found = promoted(entries, rate);
    std::vector<LearnedTable> tables;
    const FleetKey* last = nullptr;  // of a rule that was written
    std::size_t rules = 0;
    std::string doubts, unwritten;
    for (const FleetRule& rule : found.rules) {
        if (const std::string why = why_not_written(rule); !why.empty()) {
            unwritten += unmade(rule.evidence.back(), why, !rule.leave);
            continue;
        }
        const FleetKey& key = rule.key();
        if (last == nullptr || last->machine != key.machine || last->kernel != key.kernel)
            tables.push_back(empty_table(key));
        tables.back().rules.push_back(learned(rule));
        last = &key;
        rules++;
    }
    for (const auto& [entry, why] : found.doubts) doubts += unmade(entry, why, true);
    if (!doubts.empty()) doubts.insert(0, "\n# Better on the whole, but not a rule:\n");
    if (!unwritten.empty()) unwritten.insert(0, "\n# Enough evidence, but not a rule:\n");
    return drop_in("fleet", policy_heading(entries, found, rules, rate, now), tables, now) + doubts +
           unwritten;
}

// ---- the command

struct FleetOptions {
    std::string action;
    std::vector<std::string> files;
    bool json = false;
    bool worth = false;
    Shard shard;
    double fdr = 0.05;
};

Result<Shard> parse_shard(std::string_view text) {
    const auto shard = shard_named(text);
    if (!shard) return fail(fmt::format("must be I/N, with I from 1 to N, and N at most {}", kMostShards));
    return *shard;
}

Result<double> parse_fdr(std::string_view text) {
    const auto rate = parse_percentage(text);
    if (!rate) return rate;
    if (*rate <= 0 || *rate > 0.5) return fail("must be above 0% and at most 50%");
    return rate;
}

std::string shown(const FleetOptions& options, std::vector<FleetEntry> rows) {
    if (options.worth)
        std::erase_if(rows, [](const FleetEntry& row) {
            return row.pooled.after.pairs == 0 || row.key.reference_origin != "kernel";
        });
    return (options.json ? shown_lines : shown_tables)(options.worth ? kWorth : kComparisons, rows);
}

int run(const FleetOptions& options) {
    const FleetRead read = read_fleet(options.files, options.shard);
    if (read.entries.empty() && !read.whole) return kFailure;  // the errors say why
    if (options.action == "merge")
        for (const FleetEntry& entry : read.entries) fmt::print("{}\n", text_of(FleetLine{entry, "", {}}));
    else if (options.action == "policy")
        fmt::print("{}", fleet_policy(read.entries, options.fdr, ::time(nullptr)));
    else
        fmt::print("{}", shown(options, shown_rows(read.entries)));
    return read.whole ? kOk : kFailure;
}

void reject(const CLI::Option* option, const std::string& action, const char* needed) {
    if (option->count() > 0 && action != needed)
        throw CLI::ValidationError(option->get_name(), fmt::format("only for fleet {}", needed));
}

}  // namespace

CommandRun set_up_fleet(CLI::App& command, const Invocation& /*invocation*/) {
    const auto options = std::make_shared<FleetOptions>();
    command.add_option("ACTION", options->action, "Add up ledgers; show what they say; write a policy")
        ->type_name(word::kFleetAction)
        ->required();
    add_word(command, "FILE", options->files, word::kFile,
             "Of history --ledger or fleet merge; a directory; - is stdin")
        ->required();
    const auto* json = command.add_flag("--json", options->json, "show: for machines");
    const auto* worth =
        command.add_flag("--worth", options->worth, "show: what the scopes in force are worth");
    const auto* shard = add_setting(command, "--shard", "merge: the I-th of N parts of all hosts",
                                    parse_shard, options->shard)
                            ->type_name("I/N");
    const auto* fdr = add_setting(command, "--fdr", "policy: the share of wrong rules, at most; default 5%",
                                  parse_fdr, options->fdr)
                          ->type_name("P%");
    return [options, json, worth, shard, fdr] {
        const std::string& action = options->action;
        if (action != "merge" && action != "show" && action != "policy")
            throw CLI::ValidationError("ACTION",
                                       fmt::format("'{}' is not one of merge, show, policy", action));
        reject(json, action, "show");
        reject(worth, action, "show");
        reject(shard, action, "merge");
        reject(fdr, action, "policy");
        return run(*options);
    };
}

}  // namespace wq::ctl
