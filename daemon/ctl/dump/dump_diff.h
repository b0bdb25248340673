// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace wq::ctl {

// One value that differs, as text; "" where there was or is none.
struct DumpChange {
    std::string what;  // "kind", "flags", "scope", "pools", ...
    std::string before, after;
};

struct DumpDiff {
    struct Workqueue {
        std::string name;  // not unique
        std::vector<DumpChange> changes;
    };
    std::vector<DumpChange> kernel;     // its release, the default scope, the number of pods of each scope
    std::vector<Workqueue> workqueues;  // that are in both and differ
    std::vector<std::string> gone, added;
};

// What differs between two documents of `dump --json`, usually of two kernels. Workqueues are matched by
// name, several of one name in their order. Pools are compared by the CPUs that share one, because their ids
// change with each boot. Error: one of them is no such document.
Result<DumpDiff> diff_dumps(const nlohmann::ordered_json& before, const nlohmann::ordered_json& after);

// Reads a file that `dump --json` wrote. NAMES, if any: only these workqueues. Errors contain the path.
Result<nlohmann::ordered_json> read_dump_file(const std::string& path, const std::vector<std::string>& names);

std::string dump_diff_text(const DumpDiff& diff, std::size_t columns, bool colour);
nlohmann::ordered_json dump_diff_json(const DumpDiff& diff);

}  // namespace wq::ctl
