// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "bpf/bpf_dump.h"
#include "machine/kernel_info.h"

namespace wq::ctl {

nlohmann::ordered_json kernel_dump_json(const KernelDump& dump, const KernelInfo& kernel);
std::string kernel_dump_text(const KernelDump& dump, const KernelInfo& kernel, std::size_t columns,
                             bool colour);

// Reads a file that `dump --json` wrote. Errors contain the path.
Result<nlohmann::ordered_json> read_dump_file(const std::string& path);

// Compares two documents of `dump --json`, usually of two kernels: the document of `dump --diff --json`.
// Workqueues are matched by name; those with the same name, by their order. Pools are compared by the CPUs
// that share one, because their ids change with each boot. Error: BEFORE or AFTER is not such a document.
Result<nlohmann::ordered_json> dump_diff(const nlohmann::ordered_json& before,
                                         const nlohmann::ordered_json& after);
std::string dump_diff_text(const nlohmann::ordered_json& diff, std::size_t columns, bool colour);

}  // namespace wq::ctl
