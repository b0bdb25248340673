// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bus/bus.h"
#include "ctl/machine.h"
#include "ctl/terminal.h"
#include "kernel/hwloc_topology.h"
#include "kernel/probe.h"
#include "policy/installed.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// What the kernel has, seen without a daemon: a tuner that only looks.
json absent_status(const Options& options) {
    const Paths paths{options.root};
    WorkqueueFs files(paths);
    BaselineStore store(paths.baseline());
    (void)store.load();  // absent or unreadable: no baselines to show
    struct : Log {
        void write(const LogLine& /*line*/) override {}  // the reasons are in the document
    } quiet;
    Tuner tuner({files, store, quiet, [&] { return read_topology("live", options.root); },
                 [](const auto&) { return false; }},
                probe_kernel(paths));
    auto policy = load_installed_policy(options.root, options.config);
    if (policy) tuner.set_policy(std::move(*policy));
    tuner.observe(policy ? "no daemon runs" : "no daemon runs, and the policy is broken");
    tuner.look();
    return status_json(tuner, "absent");
}

std::string text_of(const json& value) {
    return value.is_string() ? value.get<std::string>() : "-";
}

std::string scope_text(const json& target) {
    const std::string word = text_of(target["scope"]);
    return word == "default" ? fmt::format("default ({})", text_of(target["effective"])) : word;
}

void print_status(const json& document) {
    const json& daemon = document["daemon"];
    const std::string reason = text_of(daemon["reason"]);
    fmt::print("wq-tuned {}: {}, mode {}{}\n\n", text_of(daemon["version"]), text_of(daemon["state"]),
               text_of(daemon["mode"]), reason.empty() ? "" : " (" + reason + ")");
    Table table({"TARGET", "SCOPE", "BASELINE", "PLANNED", "STATE", "REASON"});
    for (const json& target : document["targets"])
        table.add({text_of(target["name"]), scope_text(target), text_of(target["baseline"]),
                   text_of(target["planned"]), text_of(target["state"]), text_of(target["reason"])});
    fmt::print("{}", table.text(terminal_columns(), wants_colour()));
}

// The daemon's answer; empty where none runs.
Result<std::string> ask_daemon(const Options& options) {
    if (!options.root.empty()) return fail("a tree has no bus", ESRCH);
    const auto bus = open_system_bus();
    if (!bus) return fail(bus.error().text, ESRCH);
    return call_daemon(bus->get(), "GetStatus", {});
}

}  // namespace

int status(const Options& options) {
    const auto answer = ask_daemon(options);
    if (!answer && answer.error().code != ESRCH) return complain(answer.error().text);
    const json document = answer ? json::parse(*answer, nullptr, false) : absent_status(options);
    if (document.is_discarded()) return complain("the daemon's answer is not JSON");
    if (options.json)
        fmt::print("{}\n", dump_json(document));
    else
        print_status(document);
    return answer ? kOk : kNoDaemon;
}

}  // namespace wq::ctl
