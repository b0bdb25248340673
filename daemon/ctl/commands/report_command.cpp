// SPDX-License-Identifier: LGPL-2.1-or-later
// `report`: what `status`, `plan` and `history` show, and drawings, as one page.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "ctl/commands/shown.h"
#include "ctl/machine.h"
#include "machine/host_facts.h"
#include "machine/isolation.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostDrawn = 12;  // verdicts, the latest ones

// The pairs of the latest of RECORDS, by the counter that decided each.
std::string pairs_html(const std::vector<VerdictRecord>& records) {
    std::string out;
    std::size_t drawn = 0;
    for (auto r = records.rbegin(); r != records.rend() && drawn < kMostDrawn; ++r) {
        if (r->differences.empty()) continue;
        drawn++;
        const auto found = std::ranges::find(r->differences, r->standing.counter, &Differences::counter);
        const Differences& shown = found != r->differences.end() ? *found : r->differences.front();
        std::vector<double> percent;
        for (const double d : shown.last) percent.push_back(100 * std::expm1(d));
        out += effects_html(
            fmt::format("{}: {} against {}: effect on {}, the last {}", r->target, r->key.candidate,
                        r->key.reference, shown.counter, plural(percent.size(), "pair")),
            percent, found != r->differences.end() ? r->standing.effect : effect_of(shown.last));
    }
    return out.empty() ? "" : "<div class=\"plots\">\n" + out + "</div>\n";
}

}  // namespace

int report(const Options& options, const std::string& output) {
    ::setenv("TZ", "UTC0", 1);  // the page may be read elsewhere
    ::tzset();
    const auto machine = read_machine(options);
    if (!machine) return complain(machine.error().text);
    const auto tree = tree_of(options);
    const Isolation isolation = tree ? read_isolation(*tree) : Isolation{};
    std::string body;
    // The daemon's status is about this machine with its own kernel, policy and shard size.
    if (options.topology == "live" && !options.kernel_scopes && !options.config && !options.shard_size)
        body += section("Status", status_shown(options).html());
    body += section("Plan", plan_shown(options, *machine, machine->plan()).html()) +
            section("Machine",
                    topology_shown(machine->topology, machine->kernel, machine->shard_size).html() +
                        machine_html({machine->topology, machine->kernel, machine->shard_size, isolation}));
    if (tree) {
        VerdictStore store(tree->verdicts());
        if (const auto read = store.read(); !read) return complain(read.error().text);
        body += section("History", history_shown(store.records()).html() + pairs_html(store.records()));
    }
    const HostFacts facts = facts_of(options, machine->topology)();
    const std::string head =
        fmt::format("{}; written {} by wq-tuned {}, from {}; all times in UTC",
                    machine->kernel.release.empty() ? "kernel not known" : "Linux " + machine->kernel.release,
                    utc_text(wall_clock()), version(), options.topology);
    const std::string text = page(facts.hostname.empty() ? options.topology : facts.hostname, head, body);
    const auto done = output == "-" ? write_all(STDOUT_FILENO, text) : write_output(output, text);
    return done ? kOk : complain(done.error().text);
}

}  // namespace wq::ctl
