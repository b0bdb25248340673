// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fleet/fleet_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/text.h"
#include "evidence/effect.h"

namespace wq::ctl {
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
