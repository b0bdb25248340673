// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_show.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "ctl/fleet/fleet_text.h"
#include "ctl/render/terminal.h"
#include "evidence/promote.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

bool are_one_kind(const FleetKey& a, const FleetKey& b) {
    return a.machine == b.machine && a.kernel == b.kernel;
}

std::string heading(const FleetKey& key, std::size_t columns) {
    return wrapped(printable(machine_text(key.machine)), columns) +
           wrapped("kernel " + printable(key.kernel), columns);
}

Table new_table() {
    return Table({"CLASS", "ARMS", "COUNTER", "HOSTS", "PAIRS", "EFFECT", "E BETTER", "E WORSE", "SPREAD"});
}

std::vector<std::string> cells(const FleetEntry& row) {
    const auto& [key, p, at, shards] = row;
    return {key.kind,
            arms_text(key),
            key.counter,
            count_text(p.hosts),
            count_text(p.pairs),
            effect_text(p),
            e_text(p.log_better()),
            e_text(p.log_worse()),
            spread_text(p)};
}

}  // namespace

std::string fleet_show_text(const std::vector<FleetEntry>& entries, std::size_t columns, bool colour) {
    const auto rows = shown_rows(entries);
    if (rows.empty()) return "No host has measured anything yet.\n";
    std::string out;
    std::optional<Table> table;
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (i == 0 || !are_one_kind(rows[i - 1].key, rows[i].key)) {
            if (table) out += table->text(columns, colour) + "\n";
            out += heading(rows[i].key, columns);
            table = new_table();
        }
        table->add(cells(rows[i]));
    }
    out += table->text(columns, colour);
    const std::string note =
        "\nEffects are means over all pairs, of the cost of the counter. E "
        "is "
        "the evidence of all hosts together; chance alone reaches E in one of E cases at most. SPREAD "
        "has the deviation between hosts that noise does not explain, and how many hosts are better or worse "
        "by "
        "evidence of 20 or more of their own.";
    return out + wrapped(note, columns);
}

std::string fleet_show_json(const std::vector<FleetEntry>& entries) {
    std::string out;
    for (const auto& [key, p, at, shards] : shown_rows(entries)) {
        const Json line{{"machine", to_json(key.machine)},
                        {"kernel", key.kernel},
                        {"class", key.kind},
                        {"reference", key.reference},
                        {"reference_origin", key.reference_origin},
                        {"candidate", key.candidate},
                        {"strict", key.strict},
                        {"counter", key.counter},
                        {"hosts", p.hosts},
                        {"pairs", p.pairs},
                        {"log_e_better", p.log_better()},
                        {"log_e_worse", p.log_worse()},
                        {"effect_percent", p.pairs == 0 ? Json() : Json(p.effect_percent())},
                        {"hosts_better", p.by_host ? Json(p.hosts_better) : Json()},
                        {"hosts_worse", p.by_host ? Json(p.hosts_worse) : Json()}};
        out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    return out;
}

}  // namespace wq::ctl
