// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace wq::ctl {

// One value that differs, as text; "" if there was or is none.
struct DumpChange {
    std::string what;  // "kind", "flags", "scope", "pools", ...
    std::string before, after;
};

struct DumpDiff {
    struct Workqueue {
        std::string name;  // not unique
        std::vector<DumpChange> changes;
    };
    std::vector<DumpChange> kernel;     // release, default scope, unbound mask, number of pods per scope
    std::vector<Workqueue> workqueues;  // workqueues that are in both and differ
    std::vector<std::string> gone, added;
};

// Compares two documents of `dump --json`, usually of two kernels. Workqueues are matched by name; those with
// the same name, by their order. Pools are compared by the CPUs that share one, because their ids change with
// each boot. Error: BEFORE or AFTER is not such a document.
Result<DumpDiff> diff_dumps(const nlohmann::ordered_json& before, const nlohmann::ordered_json& after);

// Reads a file that `dump --json` wrote. NAMES: keep only these workqueues; empty: all. Errors contain the
// path.
Result<nlohmann::ordered_json> read_dump_file(const std::string& path, const std::vector<std::string>& names);

std::string dump_diff_text(const DumpDiff& diff, std::size_t columns, bool colour);
nlohmann::ordered_json dump_diff_json(const DumpDiff& diff);

}  // namespace wq::ctl
