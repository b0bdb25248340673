// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/session.h"

#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>

namespace wq::ab {
namespace {

constexpr std::int64_t kJump = 500'000'000;  // ns

std::string what_changed(const Conditions& before, const Conditions& after) {
    if (before.cpus != after.cpus) return "CPUs came or went";
    if (std::llabs(after.suspended - before.suspended) > kJump) return "the machine was suspended";
    return "";
}

}  // namespace

Status run_rounds(Comparison& comparison, const Edges& edges, std::vector<std::vector<double>>& kworkers) {
    kworkers.resize(comparison.arms());
    unsigned dropped = 0;
    for (auto order = comparison.next_round(edges.random); !order.empty();
         order = comparison.next_round(edges.random)) {
        edges.progress(comparison);
        const Conditions before = edges.conditions();
        std::map<std::size_t, double> values;
        std::map<std::size_t, double> workers;
        for (const std::size_t arm : order) {
            if (auto switched = edges.switch_to(arm); !switched) return switched;
            const auto value = edges.measure(arm);
            if (!value) return tl::unexpected(value.error());
            values[arm] = *value;
            workers[arm] = edges.kworkers();
        }
        if (const std::string why = what_changed(before, edges.conditions()); !why.empty()) {
            comparison.drop(why);
            if (++dropped == kMostDropped)
                return fail(fmt::format("{} rounds running were dropped: {}", dropped, why));
            continue;
        }
        dropped = 0;
        comparison.add(values);
        for (const auto& [arm, count] : workers) kworkers[arm].push_back(count);
    }
    return {};
}

}  // namespace wq::ab
