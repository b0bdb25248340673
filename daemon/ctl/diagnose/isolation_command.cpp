// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/diagnose/isolation_command.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ctl/diagnose/isolated_work.h"
#include "ctl/machine.h"
#include "ctl/options.h"
#include "ctl/render/host_text.h"
#include "ctl/render/terminal.h"
#include "ctl/top/top_wait.h"
#include "kernel/read_isolation.h"
#include "service/host_status.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct IsolationLook {
    Isolation isolation;
    double seconds = 0;
    std::vector<IsolatedFinding> work;
    std::uint64_t lost = 0;            // items for which there was no room
    std::vector<std::string> missing;  // what cannot be seen here, and why
};

// The kernel's workqueues at the start and at the end of a look, because some may appear or disappear.
class Names {
  public:
    explicit Names(WorkMonitor& statistics) : statistics_(statistics) {
        attached_ = statistics.attach({}, false);
        add();
    }
    void add() {
        if (!attached_) return;
        const auto sample = statistics_.sample();
        if (!sample) attached_ = tl::unexpected(sample.error());
        for (const auto& one : sample ? sample->workqueues : std::vector<KernelWorkqueue>{})
            known_[one.address] = one;
    }
    [[nodiscard]] const std::map<std::uint64_t, KernelWorkqueue>& known() const { return known_; }
    [[nodiscard]] const Status& attached() const { return attached_; }

  private:
    WorkMonitor& statistics_;
    Status attached_;
    std::map<std::uint64_t, KernelWorkqueue> known_;
};

void wait_for(double seconds, TopWait& wait) {
    const auto until = Clock::now() + duration_of(seconds);
    while (wait.until(until, false) == TopWait::Event::resized) {
    }
}

Result<IsolationLook> look(const IsolationOptions& options, const IsolationTools& tools, TopWait& wait) {
    IsolationLook out;
    out.isolation = read_isolation(tools.paths);
    if (out.isolation.cpus().empty()) return out;
    Names names(tools.statistics);
    if (const Status done = tools.profile.attach(out.isolation.cpus()); !done)
        return tl::unexpected(done.error());
    const auto began = Clock::now();
    wait_for(options.seconds, wait);
    out.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    const auto seen = tools.profile.read();
    if (!seen) return tl::unexpected(seen.error());
    names.add();
    out.work = isolated_findings(seen->isolated, names.known());
    out.lost = seen->lost_items;
    if (!names.attached()) out.missing.push_back("the names of workqueues: " + names.attached().error().text);
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

}  // namespace

int isolation(const IsolationOptions& options, const IsolationTools& tools) {
    TopWait wait;
    const auto seen = look(options, tools, wait);
    if (!seen) return complain("work on isolated CPUs cannot be seen: " + seen.error().text);
    const auto written =
        wait.write(options.json ? dump_json(json_of(*seen)) + "\n" : text_of(*seen, terminal_columns()));
    return written ? kOk : complain(written.error().text);
}

}  // namespace wq::ctl
