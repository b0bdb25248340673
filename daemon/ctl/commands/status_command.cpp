// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "bpf/bpf_dump.h"
#include "ctl/commands/shown.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_source.h"
#include "evidence/json_values.h"
#include "evidence/ledger.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/udev.h"
#include "policy/load_policy.h"
#include "service/restorer.h"
#include "service/status.h"
#include "targets/conditions.h"
#include "targets/keys.h"
#include "targets/step.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// What anybody can read of the host. KERNEL: as probed, with its pods if they could be read.
void add_host(json& document, const Paths& paths, const KernelInfo& kernel, const Topology& topology) {
    document["kernel"] = features_json(kernel, read_features(paths, kernel));
    document["kernel"]["pods"] = pods_json(kernel, topology);
}

// Takes from DOCUMENT what holds with a daemon alone. OURS_KNOWN: whether it is known what is still ours;
// else the current value of a file may be.
void take_out(json& document, const Targets& targets, bool ours_known) {
    for (json& target : document["targets"]) {
        if (target["state"] != name_of(State::waiting)) continue;  // nobody waits
        target["state"] = nullptr;
        target["reason"] = targets.all().at(target["name"]).plan.reason;
    }
    std::ranges::sort(document["targets"].get_ref<json::array_t&>(), natural_less,
                      [](const json& target) { return target["name"].get<std::string>(); });
    if (ours_known) return;
    document["worth"] = nullptr;
    for (const char* list : {"targets", "masks"})
        for (json& each : document[list]) each["baseline"] = nullptr;
}

// The status without a daemon: the plan, and what is still ours. It comes from an engine that only reads.
// WHY: the reasons that none runs, "" if there is nothing to say.
json absent_status(const Options& options, std::string why) {
    const Paths paths{options.root};
    WorkqueueFs files(paths);
    OwnedStore store(paths.owned());
    const auto loaded = store.load();
    struct : Log {
        void write(const LogLine& /*line*/) override {}  // the reasons are in the document
    } quiet;
    VerdictStore verdicts(paths.verdicts());
    const auto verdicts_read = verdicts.read();
    const auto ledger_read = StateFile<Ledger>(paths.ledger(), kLedgerRules).read();
    const Ledger ledger = ledger_read ? ledger_read->value_or(Ledger()) : Ledger();
    KernelInfo kernel = probe_kernel(paths);
    read_pods(paths, kernel);
    const auto opted_out = [&](const std::string& name) -> std::optional<bool> {
        return options.root.empty() && udev_opted_out(name).value_or(false);
    };
    Targets targets({files, store, quiet, [&] { return read_topology("live", options.root); }, opted_out,
                     verdicts, wall_clock, &ledger, nullptr, [&] { return read_cpus_now(paths); }},
                    std::move(kernel));
    Engine engine(targets);
    const auto add = [&why](const std::string& more) { why += (why.empty() ? "" : ", and ") + more; };
    targets.name_only(read_named_only(paths));
    if (const std::string off = why_switched_off(targets.kernel(), paths); !off.empty()) add(off);
    if (is_paused(paths)) add(kPaused);
    auto policy = load_installed_policy(options.root, options.config, facts_of(options));
    PolicyState on_disk;
    if (!policy) on_disk.error = policy.error().front().text();
    if (!policy) add("the policy is broken");
    if (const std::string lacks = lacks_scopes(targets.kernel()); !lacks.empty()) add(lacks);
    const auto unread = [&](const char* record, const auto& read) {
        if (!read) add(fmt::format("{} cannot be read: {}", record, read.error().text));
    };
    unread("the baseline", loaded);
    unread("the verdicts", verdicts_read);
    unread("the ledger", ledger_read);
    engine.set_policy(policy ? std::move(*policy) : no_policy());
    targets.measure_by(measures_of(targets.policy().judge, true, ledger.lacks, scheduler_in_force(paths)));
    targets.observe("not running");
    engine.look();
    json document = status_json(engine, nullptr, "absent", on_disk);
    document["daemon"]["reason"] = why;
    document["worth"] = worth_json(targets, ledger, verdicts.records(), wall_clock());
    document["isolation"] = isolation_json(read_isolation(paths));
    add_host(document, paths, targets.kernel(), targets.snapshot().topology());
    if (!on_disk.error.empty()) document["daemon"]["mode"] = nullptr;
    take_out(document, targets, loaded.has_value());
    return document;
}

// SAID, the daemon's part, with what the files of the kernel hold now; for JSON also the kernel's features
// and pods.
json running_status(const Options& options, json said) {
    const Paths paths{options.root};
    const WorkqueueFs files(paths);
    const auto names = files.names();
    std::map<std::string, json> known;
    for (json& target : said["targets"]) known.emplace(target["name"], std::move(target));
    json targets = json::array();
    const CpuSet unbound_mask = files.unbound_mask();
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
        const auto now = files.read(name, unbound_mask);
        if (!now) continue;  // it vanished after it was listed
        const auto found = known.find(name);
        json target = found != known.end() ? std::move(found->second)
                                           : json{{"name", name},
                                                  {"kind", name_of(now->kind)},
                                                  {"baseline", word_or_null(now->scope.word)},
                                                  {"state", name_of(State::waiting)},
                                                  {"reason", "new; the daemon has not looked at it yet"},
                                                  {"strict", or_null(now->strict)}};
        for (const char* key : {"order", "planned", "outcome", "comparison", "contention", "verdict"})
            target.emplace(key, nullptr);
        target["scope"] = word_or_null(now->scope.word);
        target["effective"] = name_or_null(now->scope.effective);
        targets.push_back(std::move(target));
    }
    said["targets"] = std::move(targets);
    said["isolation"] = isolation_json(read_isolation(paths));
    if (!options.json) return said;
    KernelInfo kernel = probe_kernel(paths);
    read_pods(paths, kernel);
    const auto topology = read_topology("live", options.root);
    add_host(said, paths, kernel, topology.value_or(Topology{}));
    return said;
}

std::string scope_text(const json& target) {
    const std::string word = text_in(target, "scope", "-");
    return word == "default" ? fmt::format("default ({})", text_in(target, "effective", "-")) : word;
}

// "a, b", as far as they are strings: the file may be damaged.
std::string joined(const json& list) {
    std::vector<std::string> words;
    for (const json& word : list)
        words.push_back(word.is_string() ? printable(word.get<std::string>()) : "-");
    return fmt::format("{}", fmt::join(words, ", "));
}

// The verdict and the running comparison. If both are about the same arms, only the comparison.
std::string reason_text(const json& target) {
    const json now = target.value("comparison", json(nullptr));
    if (!now.is_object()) return text_in(target, "reason", "-");
    const json verdict = target.value("verdict", json(nullptr));
    const bool decided = verdict.is_object() && verdict.value("verdict", "undecided") != "undecided";
    const bool same = decided && now.value("candidate", "") == verdict.value("candidate", "") &&
                      now.value("reference", "") == verdict.value("reference", "");
    const std::string progress = progress_text(now, wall_clock());
    return decided && !same ? verdict_text(verdict) + "; " + progress : progress;
}

std::string time_text(const json& seconds) {
    return seconds.is_number_integer() ? local_time(seconds.get<std::int64_t>()) : "an unknown time";
}

// Describes a policy that is broken on disk; "" if it is not broken.
std::string policy_text(const json& daemon) {
    const json policy = daemon.value("policy", json::object());
    if (policy.value("state", "") != "broken") return "";
    const bool absent = text_in(daemon, "state", "-") == "absent";
    const std::string since = absent ? "" : " since " + time_text(policy.value("since", json(nullptr)));
    const json loaded = policy.value("in_force", json(nullptr));
    const std::string in_force = loaded.is_null()
                                     ? "none is in force" + std::string(absent ? "" : ": observing")
                                     : "the policy loaded at " + time_text(loaded) + " stays in force";
    return fmt::format("the policy on disk is broken{}: {}; {}", since,
                       printable(text_in(policy, "error", "-")), in_force);
}

// Lists the places of the rules that have expired; "" if there are none.
std::string expired_text(const json& daemon) {
    const json rules = daemon.value("policy", json::object()).value("expired", json::array());
    if (rules.empty()) return "";
    return fmt::format("{} rule{} expired: {}", rules.size(), rules.size() == 1 ? " has" : "s have",
                       joined(rules));
}

// "14 targets: 1 comparing, 3 kept, 10 waiting".
std::string summary_of(const json& targets) {
    std::map<std::string, unsigned> states;
    for (const json& target : targets)
        if (const std::string state = text_in(target, "state", "-"); state != "-") states[state]++;
    std::vector<std::string> parts;
    for (const auto& [state, count] : states) parts.push_back(fmt::format("{} {}", count, state));
    return fmt::format("{}{}{}", plural(targets.size(), "target"), parts.empty() ? "" : ": ",
                       fmt::join(parts, ", "));
}

// Like systemctl: green is good, yellow needs attention.
std::string_view colour_of_state(std::string_view state) {
    if (state == "kept" || state == "set") return "\x1b[32m";
    if (state == "comparing") return "\x1b[1m";
    if (state == "external" || state == "quarantined" || state == "unsupported" || state == "reverted")
        return "\x1b[33m";
    return "";
}

// TARGETS as a table, grouped if there are many; MASKS instead of targets if so.
Table states_table(const json& targets, bool masks) {
    Table table(
        {masks ? "MASK" : "TARGET", masks ? "CPUS" : "SCOPE", "BASELINE", "PLANNED", "STATE", "REASON"});
    table.paint(4, colour_of_state);
    for (const json& each : targets)
        table.add({text_in(each, "name", "-"), masks ? text_in(each, "cpumask", "-") : scope_text(each),
                   text_in(each, "baseline", "-"), text_in(each, "planned", "-"), text_in(each, "state", "-"),
                   masks ? text_in(each, "reason", "-") : reason_text(each)});
    if (!masks) table.group_names();
    return table;
}

std::string daemon_line(const json& daemon) {
    const std::string state = text_in(daemon, "state", "-");
    const std::string reason = text_in(daemon, "reason");
    return fmt::format("wq-tuned {}: {}, mode {}{}", text_in(daemon, "version", "-"),
                       state == "absent" ? "not running" : state, text_in(daemon, "mode", "-"),
                       reason.empty() ? "" : " (" + printable(reason) + ")");
}

void add_head(Shown& out, const json& document) {
    const json& daemon = document.at("daemon");
    const auto add = [&out](const std::string& line) {
        if (!line.empty()) out.add(line);
    };
    add(policy_text(daemon));
    add(expired_text(daemon));
    add(daemon_line(daemon));
    for (const std::string& line : worth_lines(document, wall_clock())) add(line);
    if (const std::string names = joined(daemon.value("hosts", json::array())); !names.empty())
        add("Host tables in force: " + names);
    add(comparisons_text(document, wall_clock()));
    add(summary_of(document.at("targets")));
}

// ONE: DOCUMENT has one target, and nothing else is shown, but that no daemon runs.
Shown shown_of(const json& document, bool one) {
    Shown out;
    if (!one) {
        add_head(out, document);
        out.add("");
    }
    if (one && text_in(document.at("daemon"), "state") == "absent")
        out.add(daemon_line(document.at("daemon")));
    out.add(states_table(document.at("targets"), false));
    if (one) {
        for (const auto& [label, text] : contention_lines(document.at("targets").front()))
            out.add(fmt::format("{}: {}", label, text));
        return out;
    }
    if (const json masks = document.value("masks", json::array()); !masks.empty()) {
        out.add("");
        out.add(states_table(masks, true));
    }
    add_isolation(out, document.at("isolation"));
    return out;
}

struct HostStatus {
    json document;
    Shown shown;
    bool running = false;
};

// A file that is broken somewhere counts as no daemon.
HostStatus read_host_status(const Options& options) {
    std::string why;
    try {
        auto said = read_status(Paths{options.root});
        if (said) {
            const json document = running_status(options, std::move(*said));
            return {document, shown_of(document, false), true};
        }
        why = said.error().text;
    } catch (const json::exception&) {
        why = Paths{options.root}.status() + ": broken";
    }
    const json document = absent_status(options, why);
    return {document, shown_of(document, false), false};
}

}  // namespace

Shown status_shown(const Options& options) {
    return read_host_status(options).shown;
}

int status(const Options& options, const std::string& target) {
    auto [document, shown, running] = read_host_status(options);
    if (!target.empty()) {
        auto& targets = document.at("targets").get_ref<json::array_t&>();
        std::erase_if(targets, [&](const json& each) { return each.at("name") != target; });
        if (targets.empty()) return complain(target + ": no such target; `wq-tunectl status` lists them");
        shown = shown_of(document, true);
    }
    fmt::print("{}", options.json ? json_text(document) + "\n" : shown.text());
    return running ? kOk : kNoDaemon;
}

}  // namespace wq::ctl
