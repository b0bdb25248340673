// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/dump/dump_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "bpf/bpf_dump.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "kernel/probe.h"

namespace wq::ctl {
namespace {

struct DumpOptions {
    std::vector<std::string> names;
    bool json = false;
};

int dump(const DumpOptions& options) {
    auto all = read_kernel_dump();
    if (!all) return complain(all.error().text + "; `wq-tunectl topology` needs no BPF");
    const auto some = dump_of(std::move(*all), options.names);
    if (!some) return complain(some.error().text);
    const KernelInfo kernel = probe_kernel(Paths{});
    if (options.json)
        fmt::print(
            "{}\n",
            kernel_dump_json(*some, kernel).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        fmt::print("{}", kernel_dump_text(*some, kernel, terminal_columns(), wants_colour()));
    return kOk;
}

}  // namespace

Result<KernelDump> dump_of(KernelDump dump, const std::vector<std::string>& names) {
    if (names.empty()) return dump;
    for (const auto& name : names)
        if (std::ranges::find(dump.workqueues, name, &DumpedWorkqueue::name) == dump.workqueues.end())
            return fail("there is no workqueue '" + name + "'", ENOENT);
    std::erase_if(dump.workqueues, [&](const DumpedWorkqueue& wq) {
        return std::ranges::find(names, wq.name) == names.end();
    });
    std::set<int> used;
    for (const auto& wq : dump.workqueues) {
        for (const auto& [cpu, pool] : wq.pools) used.insert(pool);
        if (wq.default_pool) used.insert(*wq.default_pool);
    }
    std::erase_if(dump.pools, [&](const DumpedPool& pool) { return !used.contains(pool.id); });
    return dump;
}

CommandRun set_up_dump(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<DumpOptions>();
    command.add_option("WQ", options->names, "Only these workqueues, and the pools that they use")
        ->type_name(word::kWorkqueue);
    command.add_flag("--json", options->json, "For machines");
    return [options, &invocation] {
        if (!invocation.root.empty()) throw CLI::ValidationError("dump reads the running kernel: no --root");
        return dump(*options);
    };
}

}  // namespace wq::ctl
