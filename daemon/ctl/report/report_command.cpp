// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/report/report.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"
#include "service/status.h"
#include "targets/inventory.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// The daemon's status, or null. TEXT gets a description of its state. The status is only valid for this
// machine with its own kernel, policy and shard size.
json daemon_status(const Options& options, std::string& text) {
    if (options.topology != "live" || !options.root.empty() || options.kernel_scopes || options.config ||
        options.shard_size) {
        text = "not asked: the report is about another machine, kernel or policy";
        return nullptr;
    }
    auto status = read_status(Paths{options.root});
    if (!status) {
        text = "not running" + (status.error().text.empty() ? "" : ": " + status.error().text);
        return nullptr;
    }
    const json& daemon = (*status)["daemon"];
    text = fmt::format("{}, mode {}, version {}", text_in(daemon, "state"), text_in(daemon, "mode"),
                       text_in(daemon, "version"));
    if (const std::string reason = text_in(daemon, "reason"); !reason.empty())
        text += fmt::format(" ({})", reason);
    return std::move(*status);
}

Status write_report(const std::string& path, const std::string& text) {
    if (path == "-") return write_all(STDOUT_FILENO, text);
    auto done = write_output(path, text);
    if (!done && done.error().code == EEXIST)
        return fail(done.error().text + "; '-' is the standard output", EEXIST);
    return done;
}

}  // namespace

int report(const Options& options, const std::string& output) {
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    std::vector<VerdictRecord> trials;
    Isolation isolation;
    if (const auto tree = tree_of(options)) {
        isolation = read_isolation(*tree);
        VerdictStore store(tree->verdicts());
        if (const auto read = store.read(); !read) return complain(read.error().text);
        trials = store.records();
    }
    const HostFacts facts = facts_of(options, machine->topology)();
    ReportHead head{facts.hostname, machine->kernel.release, options.topology, "", ::time(nullptr)};
    const json status = daemon_status(options, head.daemon);
    const auto plan = machine->plan();
    const std::string page = report_page(
        head, result_html({trials, plan, status}) + trials_html(trials) + plan_html(plan, status) +
                  machine_html({machine->topology, machine->kernel, machine->shard_size, isolation}) +
                  history_html(trials, kernel_key(machine->kernel)));
    if (const auto done = write_report(output, page); !done) return complain(done.error().text);
    return kOk;
}

}  // namespace wq::ctl
