// SPDX-License-Identifier: LGPL-2.1-or-later
// `fleet merge|show|policy FILE...`: pools the ledgers of many hosts. docs/fleet.md describes it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "ctl/command.h"
#include "ctl/fleet/fleet.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/comparison.h"
#include "evidence/json_values.h"
#include "policy/quantity.h"

namespace wq::ctl {

std::string machine_text(const FleetMachine& m) {
    std::vector<std::string> parts;
    parts.push_back(!m.model.empty() ? m.model : !m.vendor.empty() ? m.vendor : "CPU not known");
    if (!m.arch.empty()) parts.push_back(m.arch);
    if (m.cores) parts.push_back(plural(*m.cores, "core"));
    if (m.llc_cores) parts.push_back(fmt::format("{} per LLC", *m.llc_cores));
    if (m.packages) parts.push_back(plural(*m.packages, "package"));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string arms_text(const FleetKey& key) {
    const char* origin = key.reference_origin == "policy" ? " (policy)" : "";
    const bool named = key.candidate.ends_with(kStrictSuffix);
    return fmt::format("{}{} -> {}{}", key.reference, origin, key.candidate,
                       key.strict && !named ? " strict" : "");
}

std::string effect_text(const Pooled& pooled) {
    return pooled.pairs == 0 ? "-" : wq::effect_text(Effect{pooled.effect_percent(), {}});
}

namespace {

using Json = nlohmann::ordered_json;

// "1,234,567".
std::string count_text(std::uint64_t count) {
    return fmt::format("{}", fmt::group_digits(count));
}

// ---- fleet show

// A row of `fleet show`: what --json has of it beside its key, and its cells in the table.
struct ShownEffect {
    Json line;
    std::vector<std::string> cells;
};

ShownEffect comparison_in(const FleetEntry& row) {
    const auto& [key, p, at, shards] = row;
    return {{{"pairs", p.pairs},
             {"log_e_better", p.better.log()},
             {"log_e_worse", p.worse.log()},
             {"effect_percent", p.pairs == 0 ? Json() : Json(p.effect_percent())},
             {"hosts_better", p.by_host ? Json(p.better.hosts) : Json()},
             {"hosts_worse", p.by_host ? Json(p.worse.hosts) : Json()}},
            {key.kind, arms_text(key), key.counter, count_text(p.hosts), count_text(p.pairs), effect_text(p),
             e_text(p.better.log()), e_text(p.worse.log()), spread_text(p)}};
}

ShownEffect worth_of(const FleetEntry& row) {
    const auto& [key, p, at, shards] = row;
    const Effect effect = mean_effect_of(p.after);
    return {{{"hosts_on_it", p.by_host ? Json(p.hosts_after) : Json()},
             {"pairs", p.after.pairs},
             {"effect_percent", effect.interval ? Json(effect.percent) : Json()},
             {"interval_percent", interval_or_null(effect)}},
            {key.kind, arms_text(key), key.counter, count_text(p.hosts),
             p.by_host ? count_text(p.hosts_after) : "not known", count_text(p.after.pairs),
             effect.interval ? wq::effect_text(effect) : "not yet measured"}};
}

struct View {
    const char* none;  // if there are no rows
    std::vector<std::string> header;
    ShownEffect (*of)(const FleetEntry& row);
    std::string note;
};

const View kComparisons = {
    "No host has measured anything yet.\n",
    {"CLASS", "ARMS", "COUNTER", "HOSTS", "PAIRS", "EFFECT", "E BETTER", "E WORSE", "SPREAD"},
    comparison_in,
    "\nEffects are means over all pairs, of the cost of the counter. E is the evidence of all hosts "
    "together; chance alone reaches E in one of E cases at most. SPREAD has the deviation between hosts that "
    "noise does not explain, and how many hosts are better or worse by evidence of 20 or more of their own."};

// Of --worth: scopes in force instead of the kernel's.
const View kWorth = {
    "No host has measured a scope that it runs on.\n",
    {"CLASS", "ARMS", "COUNTER", "HOSTS", "ON IT", "PAIRS", "EFFECT"},
    worth_of,
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
        table->add(view.of(rows[i]).cells);
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
        line.update(view.of(row).line);
        out += json_text(line) + "\n";
    }
    return out;
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
    auto rate = parse_percentage(text);
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
