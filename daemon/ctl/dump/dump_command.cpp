// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/dump/dump_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "bpf/bpf_dump.h"
#include "ctl/dump/dump_diff.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "kernel/probe.h"

namespace wq::ctl {
namespace {

struct DumpOptions {
    std::vector<std::string> names;
    std::string diff;  // the file to compare with; "": none
    bool json = false;
};

void print(const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json_text(json));
}

int print_diff(const DumpOptions& options, const nlohmann::ordered_json& now) {
    const auto before = read_dump_file(options.diff, options.names);
    if (!before) return complain(before.error().text);
    const auto diff = diff_dumps(*before, now);
    if (!diff) return complain(options.diff + ": " + diff.error().text);
    if (options.json)
        print(dump_diff_json(*diff));
    else
        fmt::print("{}", dump_diff_text(*diff, terminal_columns(), wants_colour()));
    return kOk;
}

// With --diff, the names need not exist now: the other dump may have them.
Result<KernelDump> wanted(KernelDump all, const DumpOptions& options) {
    if (options.diff.empty()) return dump_of(std::move(all), options.names);
    if (!options.names.empty())
        std::erase_if(all.workqueues, [&](const DumpedWorkqueue& wq) {
            return std::ranges::find(options.names, wq.name) == options.names.end();
        });
    return all;
}

int dump(const DumpOptions& options) {
    auto all = read_kernel_dump();
    if (!all) return complain(all.error().text + "; `wq-tunectl topology` needs no BPF");
    const auto some = wanted(std::move(*all), options);
    if (!some) return complain(some.error().text);
    const KernelInfo kernel = probe_kernel(Paths{});
    if (!options.diff.empty()) return print_diff(options, kernel_dump_json(*some, kernel));
    if (options.json)
        print(kernel_dump_json(*some, kernel));
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
    command
        .add_option("--diff", options->diff,
                    "What differs from this output of `dump --json`, as of another kernel")
        ->type_name(word::kFile)
        ->check(not_empty);
    command.add_flag("--json", options->json, kJsonHelp);
    return [options, &invocation] {
        if (!invocation.root.empty()) throw CLI::ValidationError("dump reads the running kernel: no --root");
        return dump(*options);
    };
}

}  // namespace wq::ctl
