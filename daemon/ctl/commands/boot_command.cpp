// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "judge/verdicts.h"
#include "plan/boot_advice.h"
#include "plan/pods.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

constexpr const char* kNothingNeeded = "Run-time knobs reach the plan; no boot option is needed.";

// The targets of classes whose latest trial here, if it is still relied on, came to that end. What cannot be
// read was not learned.
std::set<std::string> on_old_pools(const Options& options, const Machine& machine) {
    std::set<std::string> out;
    if (options.topology != "live" || machine.kernel.release.empty()) return out;
    VerdictStore verdicts(Paths{options.root}.verdicts());
    if (!verdicts.read()) return out;
    const std::string topology = machine_fingerprint(machine.kernel, machine.topology);
    const std::int64_t now = ::time(nullptr);
    std::set<std::string> classes;
    for (const VerdictRecord& record : verdicts.records()) {
        if (record.key.kernel != machine.kernel.release || record.key.topology != topology) continue;
        if (!is_trusted(record, machine.policy.judge.retry_after, now)) continue;
        classes.erase(record.key.kind);
        if (record.reason == kStuckReason) classes.insert(record.key.kind);
    }
    for (const Workqueue& target : machine.targets)
        if (classes.contains(class_of(target.name))) out.insert(target.name);
    return out;
}

BootAdvice advice_for(const Options& options, const Machine& machine) {
    BootInput input{machine.topology,
                    machine.kernel,
                    machine.policy,
                    machine.targets,
                    machine.pods_unknown,
                    std::nullopt,
                    "",
                    {}};
    const auto set_by = machine.policy.origins.find("shard.size");
    if (options.shard_size) {
        input.shard_size = options.shard_size;
        input.asked_by = "--shard-size";
    } else if (set_by != machine.policy.origins.end()) {
        input.shard_size = machine.policy.shard_size;
        input.asked_by = set_by->second.text();
    }
    input.on_old_pools = on_old_pools(options, machine);
    return advise_boot(input);
}

void print_advice(const BootAdvice& advice) {
    const auto print = [](const std::string& text, std::size_t indent) {
        const std::size_t room = std::max<std::size_t>(terminal_columns(), 20) - indent;
        for (const std::string& line : wrap(text, room)) fmt::print("{:{}}{}\n", "", indent, line);
    };
    if (advice.options.empty()) print(kNothingNeeded, 0);
    for (const BootOption& each : advice.options) {
        fmt::print("{}\n", each.option);
        print(each.reason, 4);
    }
    for (const std::string& note : advice.notes) print("Note: " + note, 0);
}

nlohmann::json json_of(const Machine& machine, const BootAdvice& advice) {
    nlohmann::json options = nlohmann::json::array();
    for (const BootOption& each : advice.options)
        options.push_back({{"option", each.option}, {"reason", each.reason}});
    return {{"kernel", kernel_json(machine.kernel)}, {"boot", std::move(options)}, {"notes", advice.notes}};
}

}  // namespace

int plan_boot(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const BootAdvice advice = advice_for(options, *machine);
    if (options.json)
        fmt::print("{}\n", dump_json(json_of(*machine, advice)));
    else
        print_advice(advice);
    return kOk;
}

}  // namespace wq::ctl
