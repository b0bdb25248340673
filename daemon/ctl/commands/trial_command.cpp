// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/trial_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "ctl/commands/order.h"
#include "ctl/machine.h"
#include "ctl/render/progress.h"
#include "ctl/render/progress_line.h"
#include "ctl/render/terminal.h"
#include "kernel/paths.h"
#include "service/bus.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// How long to wait for the record on disk. A trial that ends without a record is reported after this time.
constexpr std::chrono::seconds kForTheDisk{30};
constexpr useconds_t kLookEvery = 200'000;  // us between two looks

// The trial of TARGET in a status document; null if there is none.
json trial_in(const json& status, const std::string& target) {
    for (const json& each : status.value("targets", json::array()))
        if (each.value("name", "") == target) return each.value("trial", json(nullptr));
    return nullptr;
}

// Shows progress until the trial that was ordered for TARGET ends or is given up.
Status follow(sd_bus* bus, const std::string& target) {
    ProgressLine line;
    for (;;) {
        const auto answer = call_daemon(bus, "GetStatus", {});
        if (!answer) {
            line.end();
            return tl::unexpected(answer.error());
        }
        const json status = json::parse(*answer, nullptr, false);
        if (!status.is_object()) {
            line.end();
            return fail("the daemon's answer is not a status");
        }
        const json trial = trial_in(status, target);
        if (trial.is_null() || !trial.value("by_order", false)) break;
        line.show(progress_text(trial, wall_clock()));
        ::sleep(1);
    }
    line.end();
    return {};
}

}  // namespace

Result<VerdictRecord> wait_for_verdict(const std::string& path, const std::string& target, std::int64_t since,
                                       std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        VerdictStore store(path);
        if (auto read = store.read(); !read) return tl::unexpected(read.error());
        // Other trials may have ended since then.
        const auto& records = store.records();
        const auto found = std::find_if(records.rbegin(), records.rend(), [&](const VerdictRecord& each) {
            return each.target == target && each.time >= since;
        });
        if (found != records.rend()) return *found;
        if (std::chrono::steady_clock::now() >= end)
            return fail("the trial ended, but no verdict was saved; see the journal");
        ::usleep(kLookEvery);
    }
}

int trial(const Options& options, const std::string& target, const std::string& arm) {
    if (!options.root.empty()) {
        complain("--root names a tree, which has no daemon");
        return kNoDaemon;
    }
    const auto failed = [](const Error& error) {
        complain(error.text);
        return error.code == ESRCH ? kNoDaemon : kFailure;
    };
    const auto bus = open_system_bus();
    if (!bus) return failed({ESRCH, "the daemon cannot be reached: " + bus.error().text});
    const std::string path = Paths{}.verdicts();
    const auto began = wall_clock();
    if (const auto begun = order_daemon(bus->get(), "Trial", {target, arm}); !begun)
        return failed(begun.error());
    if (!options.json)
        say(fmt::format(
            "The trial goes on without this command; `wq-tunectl revert {}` ends it, and holds the "
            "baseline.\n",
            target));
    if (const auto done = follow(bus->get(), target); !done) return failed(done.error());
    const auto found = wait_for_verdict(path, target, began, kForTheDisk);
    if (!found) return failed(found.error());
    const VerdictRecord& record = *found;
    if (options.json)
        fmt::print("{}\n", dump_json(to_json(record)));
    else
        fmt::print("{} against {}: {}{}: {}\n", record.key.candidate, record.key.baseline,
                   record.judged ? name_of(record.outcome) : "cut off",
                   record.reason.empty() ? "" : " (" + record.reason + ")", text_of(record.standing));
    return record.judged ? kOk : kFailure;
}

}  // namespace wq::ctl
