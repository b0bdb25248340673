// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/isolation_command.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/observe/top_wait.h"
#include "ctl/options.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "machine/isolation.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFindings = 12;
constexpr std::size_t kMostOrigins = 3;

struct IsolationLook {
    Isolation isolation;
    double seconds = 0;
    std::vector<IsolatedFinding> work;
    std::uint64_t lost = 0;            // items for which there was no room
    std::vector<std::string> missing;  // what cannot be seen here, and why
};

Result<IsolationLook> look(const IsolationOptions& options, const IsolationTools& tools, TopWait& wait) {
    IsolationLook out;
    out.isolation = read_isolation(tools.paths);
    if (out.isolation.cpus().empty()) return out;
    // The workqueues at the start and at the end, because some may appear or disappear.
    std::map<std::uint64_t, KernelWorkqueue> known;
    Status named = tools.statistics.attach({}, false);
    const auto add_names = [&] {
        if (!named) return;
        const auto sample = tools.statistics.sample();
        if (!sample) named = tl::unexpected(sample.error());
        for (const auto& one : sample ? sample->workqueues : std::vector<KernelWorkqueue>{})
            known[one.address] = one;
    };
    add_names();
    if (const Status done = tools.profile.attach(out.isolation.cpus()); !done)
        return tl::unexpected(done.error());
    const auto began = Clock::now();
    const auto until = began + duration_of(options.seconds);
    while (wait.until(until, false) == TopWait::Event::resized) {
    }
    out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    const auto seen = tools.profile.read();
    if (!seen) return tl::unexpected(seen.error());
    add_names();
    out.work = isolated_findings(seen->isolated, known);
    out.lost = seen->lost_items;
    if (!named) out.missing.push_back("the names of workqueues: " + named.error().text);
    if (!tools.profile.samples())
        out.missing.push_back("which work a timer queued: " + tools.profile.limits());
    return out;
}

// The keys of `isolation` in `status --json`, plus the keys that only this look provides.
json json_of(const IsolationLook& look) {
    json out = isolation_json(look.isolation);
    out.update(counted_json({{}, look.lost, look.seconds}));
    out["cpus"] = look.isolation.cpus().list();
    out["work"] = json(isolated_json(look.work));
    out["missing"] = look.missing;
    return out;
}

std::string text_of(const IsolationLook& look, std::size_t columns) {
    const CpuSet cpus = look.isolation.cpus();
    std::string out = isolated_cpus_text(isolation_json(look.isolation));
    Paragraphs rest(columns);
    if (cpus.empty()) {
        rest.begin(
            "No CPU is isolated: neither isolcpus= nor nohz_full= is in force, and no cpuset "
            "partition is \"isolated\".");
        if (!look.isolation.complete) rest.note("There are more cgroups than were looked at.");
        return out + (out.empty() ? "" : "\n") + std::move(rest).text();
    }
    tell_isolated(rest, look.work, cpus);
    std::uint64_t items = look.lost;
    for (const auto& one : look.work) items += one.items;
    rest.begin(items == 0 ? fmt::format("No work item started on isolated CPUs {} in {:.1f} s.", cpus.list(),
                                        look.seconds)
                          : fmt::format("{} started on isolated CPUs {} in {:.1f} s.", plural(items, "item"),
                                        cpus.list(), look.seconds));
    if (look.lost > 0) rest.note(fmt::format("There was no room for {} of them.", look.lost));
    for (const auto& one : look.missing) rest.note("Not seen: " + one);
    return out + "\n" + std::move(rest).text();
}

IsolatedFinding finding_of(const IsolatedWork& one,
                           const std::map<std::uint64_t, KernelWorkqueue>& workqueues) {
    IsolatedFinding out{"", "", one.function, one.items, one.origins};
    const auto at = workqueues.find(one.workqueue);
    if (one.workqueue != 0 && at != workqueues.end()) {
        out.workqueue = at->second.name;
        out.kind = at->second.unbound ? "unbound" : "per-cpu";
    } else if (one.workqueue != 0) {
        out.workqueue = "an unknown workqueue";
    }
    return out;
}

std::string head_of(const IsolatedFinding& one, const CpuSet& isolated) {
    std::string of = " in a soft interrupt";
    if (!one.workqueue.empty()) of = " of " + printable(one.workqueue);
    if (!one.kind.empty()) of += fmt::format(" ({})", one.kind == "per-cpu" ? "per-CPU" : one.kind);
    return fmt::format("{} of {}{} on isolated CPUs {}", plural(one.items, "item"),
                       one.function.empty() ? "an unknown function" : printable(one.function), of,
                       isolated.list());
}

std::string text_of(const WorkOrigin& origin) {
    return origin.timer ? fmt::format("{} queued by a timer on CPU {}", origin.items, origin.cpu)
                        : fmt::format("{} queued on CPU {}, where {} ran", origin.items, origin.cpu,
                                      printable(origin.task));
}

}  // namespace

std::vector<IsolatedFinding> isolated_findings(const std::vector<IsolatedWork>& work,
                                               const std::map<std::uint64_t, KernelWorkqueue>& workqueues) {
    std::vector<IsolatedFinding> out;
    for (const auto& one : work)
        if (one.items > 0) out.push_back(finding_of(one, workqueues));
    std::ranges::stable_sort(out, std::ranges::greater{}, &IsolatedFinding::items);
    return out;
}

void tell_isolated(Paragraphs& out, const std::vector<IsolatedFinding>& findings, const CpuSet& isolated) {
    for (std::size_t i = 0; i < std::min(findings.size(), kMostFindings); i++) {
        const IsolatedFinding& one = findings[i];
        out.begin(head_of(one, isolated));
        for (std::size_t k = 0; k < std::min(one.origins.size(), kMostOrigins); k++)
            out.say(text_of(one.origins[k]));
        if (one.origins.size() > kMostOrigins)
            out.say(fmt::format("and from {} more", plural(one.origins.size() - kMostOrigins, "place")));
        if (one.kind == "unbound")
            out.say(
                "The cpumask of this workqueue and the mask of all unbound workqueues decide where it runs.");
    }
    if (findings.size() > kMostFindings)
        out.say(fmt::format("and {} more", plural(findings.size() - kMostFindings, "function")));
}

Json isolated_json(const std::vector<IsolatedFinding>& findings) {
    Json out = Json::array();
    for (const auto& one : findings) {
        Json origins = Json::array();
        for (const auto& origin : one.origins)
            origins.push_back({{"timer", origin.timer},
                               {"cpu", origin.cpu},
                               {"task", word_or_null(origin.task)},
                               {"items", origin.items}});
        out.push_back({{"workqueue", word_or_null(one.workqueue)},
                       {"kind", word_or_null(one.kind)},
                       {"function", one.function},
                       {"items", one.items},
                       {"origins", std::move(origins)}});
    }
    return out;
}

int isolation(const IsolationOptions& options, const IsolationTools& tools) {
    TopWait wait;
    const auto seen = look(options, tools, wait);
    if (!seen) return complain("work on isolated CPUs cannot be seen: " + seen.error().text);
    const auto written =
        wait.write(options.json ? dump_json(json_of(*seen)) + "\n" : text_of(*seen, terminal_columns()));
    return written ? kOk : complain(written.error().text);
}

void Paragraphs::add(const std::string& text, std::size_t indent) {
    const std::size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
    for (const auto& line : wrap(text, width)) text_ += std::string(indent, ' ') + line + '\n';
}

}  // namespace wq::ctl
