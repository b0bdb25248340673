// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "machine/kernel_dump.h"
#include "machine/kernel_info.h"

namespace wq::ctl {

// DUMP restricted to the workqueues NAMES (as in sysfs) and the pools that they use. No names: everything.
// Error: ENOENT if no workqueue has one of the names.
Result<KernelDump> dump_of(KernelDump dump, const std::vector<std::string>& names);

nlohmann::ordered_json kernel_dump_json(const KernelDump& dump, const KernelInfo& kernel);
std::string kernel_dump_text(const KernelDump& dump, const KernelInfo& kernel, std::size_t columns,
                             bool colour);

// `wq-tunectl dump`: the kernel's pods, worker pools and workqueues.
CommandRun set_up_dump(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
