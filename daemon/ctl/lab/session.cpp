// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/session.h"

#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>

#include "base/file.h"

namespace wq::ab {
namespace {

constexpr std::int64_t kJump = 500'000'000;  // ns

std::string what_changed(const Conditions& before, const Conditions& after) {
    if (before.cpus != after.cpus) return "CPUs came or went";
    if (std::llabs(after.suspended - before.suspended) > kJump) return "the machine was suspended";
    return "";
}

}  // namespace

Status run_rounds(Comparison& comparison, const Edges& edges) {
    unsigned dropped = 0;
    for (auto order = comparison.next_round(edges.random); !order.empty();
         order = comparison.next_round(edges.random)) {
        edges.progress(comparison);
        const Conditions before = edges.conditions();
        std::map<std::size_t, double> values;
        for (const std::size_t arm : order) {
            if (auto switched = edges.switch_to(arm); !switched) return switched;
            const auto value = edges.measure(arm);
            if (!value) return tl::unexpected(value.error());
            values[arm] = *value;
        }
        if (const std::string why = what_changed(before, edges.conditions()); !why.empty()) {
            comparison.drop(why);
            if (++dropped == kMostDropped)
                return fail(fmt::format("{} rounds in a row were dropped: {}", dropped, why));
            continue;
        }
        dropped = 0;
        comparison.add(values);
        edges.counts();
    }
    return {};
}

unsigned count_kworkers(const Paths& paths) {
    unsigned count = 0;
    for (const std::string& name : names_or_none(paths.proc())) {
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto comm = read_file(paths.proc() + "/" + name + "/comm");  // it may have ended
        if (comm && comm->starts_with("kworker/u")) count++;
    }
    return count;
}

}  // namespace wq::ab
