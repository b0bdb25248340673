// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "evidence/verdicts.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "plan/boot_advice.h"
#include "plan/pods.h"
#include "service/status.h"
#include "targets/inventory.h"

namespace wq::ctl {
namespace {

// Returns the targets of classes whose latest trusted trial on this kernel and topology ended with
// kStuckReason; none if the verdicts cannot be read.
std::set<std::string> on_old_pools(const Options& options, const Machine& machine) {
    std::set<std::string> out;
    if (options.topology != "live" || machine.kernel.release.empty()) return out;
    VerdictStore verdicts(Paths{options.root}.verdicts());
    if (!verdicts.read()) return out;
    const std::string topology = machine_fingerprint(machine.kernel, machine.topology);
    const std::string kernel = kernel_key(machine.kernel);
    const std::int64_t now = ::time(nullptr);
    std::set<std::string> classes;
    for (const VerdictRecord& record : verdicts.records()) {
        if (record.key.kernel != kernel || record.key.topology != topology) continue;
        if (!is_trusted(record, machine.policy.judge.retry_after, now)) continue;
        classes.erase(record.key.kind);
        if (record.reason == kStuckReason) classes.insert(record.key.kind);
    }
    for (const Workqueue& target : machine.targets)
        if (classes.contains(class_of(target.name))) out.insert(target.name);
    return out;
}

// The types of the kernel are read only where CPUs are isolated, because that takes long.
BootFacts read_boot_facts(const Paths& paths, const KernelInfo& kernel) {
    const Isolation isolation = read_isolation(paths);
    BootFacts out;
    out.cmdline = read_first_line(paths.cmdline());
    out.nohz_full = isolation.nohz_full;
    out.isolated = isolation.isolcpus | isolation.nohz_full;
    if (!out.isolated.empty()) out.pwlocks = read_features(paths, kernel).pwlocks.value_or(false);
    out.power_efficient = read_first_line(paths.parameters() + "/power_efficient") == "Y";
    out.hog_us = number_of<std::uint64_t>(read_first_line(paths.parameters() + "/cpu_intensive_thresh_us"));
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
                    on_old_pools(options, machine)};
    const auto set_by = machine.policy.origins.find("shard.size");
    if (options.shard_size) {
        input.shard_size = options.shard_size;
        input.asked_by = "--shard-size";
    } else if (set_by != machine.policy.origins.end()) {
        input.shard_size = machine.policy.shard_size;
        input.asked_by = set_by->second.text();
    }
    return advise_boot(input);
}

void print_advice(const BootAdvice& advice, const std::vector<Alternative>& others) {
    if (advice.options.empty()) print_text("The plan needs no boot option.");
    for (const BootOption& each : advice.options) {
        fmt::print("{}\n", each.option);
        print_text(each.reason, 4);
    }
    for (const std::string& note : advice.notes) print_text("Note: " + note);
    if (others.empty()) return;
    fmt::print("\n");
    print_text(
        "Alternatives that the plan does not need. Only a comparison (`wq-tunectl ab --arm`) shows which is "
        "better here.");
    for (const Alternative& one : others) {
        fmt::print("\n");
        print_text(one.devices.empty() ? one.option
                                       : fmt::format("{} ({})", one.option, fmt::join(one.devices, ", ")));
        print_text("For: " + one.speaks_for + ".", 4);
        print_text("Against: " + one.against + ".", 4);
        print_text("How: " + one.how + ".", 4);
    }
}

nlohmann::json json_of(const Machine& machine, const BootAdvice& advice,
                       const std::vector<Alternative>& others) {
    nlohmann::json options = nlohmann::json::array();
    for (const BootOption& each : advice.options)
        options.push_back({{"option", each.option}, {"reason", each.reason}});
    nlohmann::json alternatives = nlohmann::json::array();
    for (const Alternative& one : others)
        alternatives.push_back({{"option", one.option},
                                {"devices", one.devices},
                                {"for", one.speaks_for},
                                {"against", one.against},
                                {"how", one.how}});
    return {{"kernel", kernel_json(machine.kernel)},
            {"boot", std::move(options)},
            {"notes", advice.notes},
            {"alternatives", std::move(alternatives)}};
}

}  // namespace

int plan_boot(const Options& options) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    BootAdvice advice = advice_for(options, *machine);
    // The devices and the kernel's parameters are read in /sys.
    const auto tree = tree_of(options);
    if (tree && !machine->kernel.release.empty())
        for (std::string& note : notes_on(read_boot_facts(*tree, machine->kernel)))
            advice.notes.push_back(std::move(note));
    const auto others = tree ? alternatives(read_io_devices(*tree)) : std::vector<Alternative>{};
    if (options.json)
        fmt::print("{}\n", dump_json(json_of(*machine, advice, others)));
    else
        print_advice(advice, others);
    return kOk;
}

}  // namespace wq::ctl
