// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/status_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "bpf/read_pods.h"
#include "ctl/machine.h"
#include "ctl/render/host_text.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "ctl/render/verdict_text.h"
#include "engine/candidates.h"
#include "engine/conditions.h"
#include "engine/ledger_file.h"
#include "engine/measures.h"
#include "kernel/features.h"
#include "kernel/hwloc_topology.h"
#include "kernel/probe.h"
#include "kernel/read_isolation.h"
#include "kernel/udev.h"
#include "policy/installed.h"
#include "service/bus.h"
#include "service/host_status.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// The status without a daemon. It comes from an engine that only reads.
json absent_status(const Options& options, std::string why) {
    const Paths paths{options.root};
    WorkqueueFs files(paths);
    BaselineStore store(paths.baseline());
    const auto loaded = store.load();
    struct : Log {
        void write(const LogLine& /*line*/) override {}  // the reasons are in the document
    } quiet;
    VerdictStore verdicts(paths.verdicts());
    const auto verdicts_read = verdicts.read();
    const auto ledger_read = LedgerFile::read(paths.ledger());
    const Ledger ledger = ledger_read.value_or(Ledger{});
    MaskStore mask_store(paths.masks());
    const auto masks_loaded = mask_store.load();
    KernelInfo kernel = probe_kernel(paths);
    read_pods(paths, kernel);
    const auto opted_out = [&](const std::string& name) -> std::optional<bool> {
        return options.root.empty() && udev_opted_out(name);
    };
    Engine engine({files, store, quiet, [&] { return read_topology("live", options.root); }, opted_out,
                   verdicts, wall_clock,
                   [&](const StepInput& input) {
                       return next_step(input, {[&](const LedgerKey& key) { return ledger.find(key); }});
                   }},
                  std::move(kernel));
    if (const std::string held_back = why_held_back(engine.kernel(), paths); !held_back.empty())
        why += ", and " + held_back;
    auto policy = load_installed_policy(options.root, options.config, facts_of(options));
    PolicyState on_disk;
    if (!policy) on_disk.error = policy.error().front().text();
    if (!policy) why += ", and the policy is broken";
    const auto unread = [&](const char* record, const auto& read) {
        if (!read) why += fmt::format(", and {} cannot be read: {}", record, read.error().text);
    };
    unread("the baseline", loaded);
    unread("the record of masks", masks_loaded);
    unread("the verdicts", verdicts_read);
    unread("the ledger", ledger_read);
    engine.set_policy(policy ? std::move(*policy) : no_policy());
    engine.measure_by(measures_of(engine.policy().judge, true, ledger.lacks, scheduler_in_force(paths)));
    engine.observe("no daemon runs");  // the reason for targets and masks; the daemon's reason is WHY
    engine.look();
    MaskKeeper masks({files, mask_store, quiet, [&] { return read_cpus_now(paths); }, opted_out});
    masks.look(engine.policy(), "no daemon runs");
    engine.observe(why);
    json document = status_json(engine, nullptr, "absent", on_disk);
    document["masks"] = masks_json(masks);
    document["isolation"] = isolation_json(read_isolation(paths), {});
    document["kernel"] = features_json(engine.kernel(), read_features(paths, engine.kernel()), false);
    document["kernel"]["pods"] = pods_json(engine.kernel(), engine.inventory().topology());
    if (!on_disk.error.empty()) document["daemon"]["mode"] = nullptr;
    if (!loaded)  // the current value of a file may be ours
        for (json& target : document["targets"]) target["baseline"] = nullptr;
    if (!masks_loaded)
        for (json& mask : document["masks"]) mask["baseline"] = nullptr;
    return document;
}

std::string text_of(const json& value) {
    return value.is_string() ? value.get<std::string>() : "-";
}

std::string scope_text(const json& target) {
    const std::string word = text_of(target["scope"]);
    return word == "default" ? fmt::format("default ({})", text_of(target["effective"])) : word;
}

// The verdict and the running comparison. If both are about the same arms, only the comparison.
std::string reason_text(const json& target) {
    const json trial = target.value("trial", json(nullptr));
    if (!trial.is_object()) return text_of(target["reason"]);
    const json verdict = target.value("verdict", json(nullptr));
    const bool decided = verdict.is_object() && verdict.value("verdict", "undecided") != "undecided";
    const bool same = decided && trial.value("candidate", "") == verdict.value("candidate", "") &&
                      trial.value("baseline", "") == verdict.value("baseline", "");
    const std::string progress = progress_text(trial, wall_clock());
    return decided && !same ? verdict_text(verdict) + "; " + progress : progress;
}

std::string time_text(const json& seconds) {
    return seconds.is_number_integer() ? local_time(seconds.get<std::int64_t>()) : "an unknown time";
}

// Describes a policy that is broken on disk; "" if it is not broken.
std::string policy_text(const json& daemon) {
    const json policy = daemon.value("policy", json::object());
    if (policy.value("state", "") != "broken") return "";
    const bool absent = daemon["state"] == "absent";
    const std::string since = absent ? "" : " since " + time_text(policy["since"]);
    const std::string in_force =
        policy["in_force"].is_null()
            ? "none is in force" + std::string(absent ? "" : ": observing")
            : "the policy loaded at " + time_text(policy["in_force"]) + " stays in force";
    return fmt::format("the policy on disk is broken{}: {}; {}", since, printable(text_of(policy["error"])),
                       in_force);
}

// Lists the places of the rules that have expired; "" if there are none.
std::string expired_text(const json& daemon) {
    const json rules = daemon.value("policy", json::object()).value("expired", json::array());
    if (rules.empty()) return "";
    std::vector<std::string> places;
    for (const json& rule : rules) places.push_back(printable(text_of(rule)));
    return fmt::format("{} rule{} expired: {}", rules.size(), rules.size() == 1 ? " has" : "s have",
                       fmt::join(places, ", "));
}

// "14 targets: 3 kept, 1 trial, 10 waiting".
std::string summary_of(const json& targets) {
    std::map<std::string, unsigned> states;
    for (const json& target : targets) states[text_of(target["state"])]++;
    std::vector<std::string> parts;
    for (const auto& [state, count] : states) parts.push_back(fmt::format("{} {}", count, state));
    return fmt::format("{}{}{}", plural(targets.size(), "target"), parts.empty() ? "" : ": ",
                       fmt::join(parts, ", "));
}

// Like systemctl: green is good, yellow needs attention.
std::string_view colour_of_state(std::string_view state) {
    if (state == "kept" || state == "applied") return "\x1b[32m";
    if (state == "trial") return "\x1b[1m";
    if (state == "external" || state == "quarantined" || state == "unsupported" || state == "reverted")
        return "\x1b[33m";
    return "";
}

void print_masks(const json& document) {
    const json masks = document.value("masks", json::array());  // a daemon of another version has none
    if (masks.empty()) return;
    Table table({"MASK", "CPUS", "BASELINE", "PLANNED", "STATE", "REASON"});
    table.paint(4, colour_of_state);
    for (const json& mask : masks)
        table.add({text_of(mask["name"]), text_of(mask["cpumask"]), text_of(mask["baseline"]),
                   text_of(mask["planned"]), text_of(mask["state"]), text_of(mask["reason"])});
    fmt::print("\n{}", table.text(terminal_columns(), wants_colour()));
}

void print_status(const json& document) {
    const json& daemon = document["daemon"];
    if (const std::string policy = policy_text(daemon); !policy.empty())
        fmt::print("{}", wrapped(policy, terminal_columns()));
    if (const std::string expired = expired_text(daemon); !expired.empty())
        fmt::print("{}", wrapped(expired, terminal_columns()));
    const std::string reason = text_of(daemon["reason"]);
    const std::string head =
        fmt::format("wq-tuned {}: {}, mode {}{}", text_of(daemon["version"]), text_of(daemon["state"]),
                    text_of(daemon["mode"]), reason.empty() ? "" : " (" + reason + ")");
    fmt::print("{}", wrapped(head, terminal_columns()));
    if (const json hosts = daemon.value("hosts", json::array()); !hosts.empty()) {
        std::string names;
        for (const json& name : hosts) names += (names.empty() ? "" : ", ") + text_of(name);
        fmt::print("{}", wrapped("Host tables in force: " + names, terminal_columns()));
    }
    if (const std::string compared = comparisons_text(document, wall_clock()); !compared.empty())
        fmt::print("{}", wrapped(compared, terminal_columns()));
    fmt::print("{}", wrapped(summary_of(document["targets"]), terminal_columns()));
    fmt::print("\n");
    Table table({"TARGET", "SCOPE", "BASELINE", "PLANNED", "STATE", "REASON"});
    table.paint(4, colour_of_state);
    for (const json& target : document["targets"])
        table.add({text_of(target["name"]), scope_text(target), text_of(target["baseline"]),
                   text_of(target["planned"]), text_of(target["state"]), reason_text(target)});
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    print_masks(document);
    print_host(document);
}

}  // namespace

Result<std::string> ask_daemon(const Options& options) {
    if (!options.root.empty()) return fail("no daemon runs", ESRCH);
    const auto bus = open_system_bus();
    if (!bus) return fail("the daemon cannot be reached: " + bus.error().text, ESRCH);
    return call_daemon(bus->get(), "GetStatus", {});
}

int status(const Options& options) {
    const auto answer = ask_daemon(options);
    if (!answer && answer.error().code != ESRCH) return complain(answer.error().text);
    const json document =
        answer ? json::parse(*answer, nullptr, false) : absent_status(options, answer.error().text);
    if (document.is_discarded()) return complain("the daemon's answer is not JSON");
    if (options.json)
        fmt::print("{}\n", dump_json(document));
    else
        print_status(document);
    return answer ? kOk : kNoDaemon;
}

}  // namespace wq::ctl
