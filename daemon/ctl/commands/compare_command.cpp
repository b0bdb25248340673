// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/compare_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "ctl/machine.h"
#include "ctl/render/progress.h"
#include "ctl/render/terminal.h"
#include "machine/paths.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// How long to wait for the record on disk. A comparison that ends without a record is reported after this
// time.
constexpr std::chrono::seconds kForTheDisk{30};
constexpr useconds_t kLookEvery = 200'000;  // us between two looks

// The comparison of TARGET in a status document; null if there is none.
json comparison_in(const json& status, const std::string& target) {
    for (const json& each : status.at("targets"))
        if (each.value("name", "") == target) return each.value("comparison", json(nullptr));
    return nullptr;
}

// Shows progress until the comparison that was ordered for TARGET ends or is given up.
Status follow(const std::string& target) {
    ProgressLine line;
    for (;; ::sleep(1)) {
        const auto status = read_status(Paths{});
        const json now = status ? comparison_in(*status, target) : json(nullptr);
        if (now.is_null() || !now.value("by_order", false)) line.end();
        if (!status) return fail("wq-tuned ended meanwhile", ESRCH);
        if (now.is_null() || !now.value("by_order", false)) return {};
        line.show(progress_text(now, wall_clock()));
    }
}

}  // namespace

Result<VerdictRecord> wait_for_verdict(const std::string& path, const std::string& target, std::int64_t since,
                                       std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        VerdictStore store(path);
        if (auto read = store.read(); !read) return tl::unexpected(read.error());
        // Other comparisons may have ended since then.
        const auto& records = store.records();
        const auto found = std::find_if(records.rbegin(), records.rend(), [&](const VerdictRecord& each) {
            return each.target == target && each.time >= since;
        });
        if (found != records.rend()) return *found;
        if (std::chrono::steady_clock::now() >= end)
            return fail("the comparison ended, but no verdict was saved; see the journal");
        ::usleep(kLookEvery);
    }
}

int compare(const Options& options, const std::string& target, const std::string& with) {
    const std::int64_t began = wall_clock();
    if (const int ordered = order(options, "Compare", {target, with}); ordered != kOk) return ordered;
    if (!options.json)
        say(fmt::format(
            "The comparison goes on without this command; `wq-tunectl revert {}` ends it, and holds the "
            "baseline.\n",
            target));
    const auto failed = [](const Error& error) {
        complain(error.text);
        return error.code == ESRCH ? kNoDaemon : kFailure;
    };
    if (const auto done = follow(target); !done) return failed(done.error());
    const auto found = wait_for_verdict(Paths{}.verdicts(), target, began, kForTheDisk);
    if (!found) return failed(found.error());
    const VerdictRecord& record = *found;
    if (options.json)
        fmt::print("{}\n", dump_json(to_json(record)));
    else
        fmt::print("{} against {}: {}{}: {}\n", record.key.candidate, record.key.reference,
                   record.judged ? name_of(record.outcome) : "cut off",
                   record.reason.empty() ? "" : " (" + record.reason + ")", text_of(record.standing));
    return record.judged ? kOk : kFailure;
}

}  // namespace wq::ctl
