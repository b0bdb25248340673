// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/verdicts.h"
#include "machine/host_facts.h"
#include "plan/boot_advice.h"
#include "plan/pods.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

constexpr const char* kNothingNeeded = "The plan needs no boot option.";

// Returns the targets of classes whose latest trusted trial on this kernel and topology ended with
// kStuckReason; none if the verdicts cannot be read.
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

// Returns none for a source without a /sys, because the devices are read there.
std::vector<Alternative> alternatives_for(const Options& options) {
    const auto tree = tree_of(options);
    return tree ? alternatives(read_io_devices(*tree)) : std::vector<Alternative>{};
}

void print(const std::string& text, std::size_t indent) {
    const std::size_t room = std::max<std::size_t>(terminal_columns(), 20) - indent;
    for (const std::string& line : wrap(text, room)) fmt::print("{:{}}{}\n", "", indent, line);
}

void print_advice(const BootAdvice& advice) {
    if (advice.options.empty()) print(kNothingNeeded, 0);
    for (const BootOption& each : advice.options) {
        fmt::print("{}\n", each.option);
        print(each.reason, 4);
    }
    for (const std::string& note : advice.notes) print("Note: " + note, 0);
}

void print_alternatives(const std::vector<Alternative>& all) {
    if (all.empty()) return;
    fmt::print("\n");
    print(
        "Alternatives that the plan does not need. Only a comparison (`wq-tunectl ab --arm`) shows which is "
        "better here.",
        0);
    for (const Alternative& one : all) {
        const std::string devices =
            one.devices.empty() ? "" : fmt::format(" ({})", fmt::join(one.devices, ", "));
        fmt::print("\n");
        print(one.option + devices, 0);
        print("For: " + one.speaks_for + ".", 4);
        print("Against: " + one.against + ".", 4);
        print("How: " + one.how + ".", 4);
    }
}

nlohmann::json json_of(const Machine& machine, const BootAdvice& advice,
                       const std::vector<Alternative>& all) {
    nlohmann::json options = nlohmann::json::array();
    for (const BootOption& each : advice.options)
        options.push_back({{"option", each.option}, {"reason", each.reason}});
    nlohmann::json others = nlohmann::json::array();
    for (const Alternative& one : all)
        others.push_back({{"option", one.option},
                          {"devices", one.devices},
                          {"for", one.speaks_for},
                          {"against", one.against},
                          {"how", one.how}});
    return {{"kernel", kernel_json(machine.kernel)},
            {"boot", std::move(options)},
            {"notes", advice.notes},
            {"alternatives", std::move(others)}};
}

}  // namespace

int plan_boot(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const BootAdvice advice = advice_for(options, *machine);
    const std::vector<Alternative> others = alternatives_for(options);
    if (options.json) {
        fmt::print("{}\n", dump_json(json_of(*machine, advice, others)));
        return kOk;
    }
    print_advice(advice);
    print_alternatives(others);
    return kOk;
}

}  // namespace wq::ctl
