// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <vector>

#include "base/text.h"
#include "ctl/render/terminal.h"
#include "evidence/effect.h"
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

namespace {

constexpr double kPlainLog = 6.907;  // below e^6.907 = 999.3 the number is printed without an exponent

bool are_many(std::uint64_t some, std::uint64_t all) {
    return some > 1 && static_cast<double>(some) > kMostWorse * static_cast<double>(all);
}

}  // namespace

std::string e_text(double log) {
    if (std::abs(log) <= kPlainLog) return fmt::format("{:.3g}", std::exp(log));
    const double log10 = log / std::numbers::ln10;
    constexpr double kHalfDigit = 0.0021;  // log10(10 / 9.95): 9.95 is written as 10.0
    const double exponent = std::floor(log10 + kHalfDigit);
    return fmt::format("{:.1f}e{:+.0f}", std::pow(10, log10 - exponent), exponent);
}

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

std::string spread_text(const Pooled& p) {
    if (!p.by_host) return "not known";
    const bool mixed = are_many(p.hosts_better, p.hosts) && are_many(p.hosts_worse, p.hosts);
    return fmt::format("{}{:.2f}%; {} better, {} worse", mixed ? "MIXED: " : "",
                       100 * std::expm1(p.spread.deviation()), count_text(p.hosts_better),
                       count_text(p.hosts_worse));
}

std::string count_text(std::uint64_t count) {
    const std::string digits = std::to_string(count);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); i++) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

}  // namespace wq::ctl
