// SPDX-License-Identifier: LGPL-2.1-or-later
// Orders (each is one call to the daemon), `compare`, `history` and `undo`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/commands/shown.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"
#include "evidence/verdicts.h"
#include "machine/paths.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "owned/writer.h"
#include "service/bus.h"
#include "service/status.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// How long to wait for the record on disk. A comparison that ends without a record is reported after this
// time.
constexpr std::chrono::seconds kForTheDisk{30};
constexpr useconds_t kLookEvery = 200'000;  // us between two looks

int failed(const Error& error) {
    complain(error.text);
    return error.code == ESRCH ? kNoDaemon : kFailure;
}

// The comparison that was ordered for TARGET, in a status document; null if there is none.
json ordered_in(const json& status, const std::string& target) {
    for (const json& each : status.at("targets"))
        if (each.value("name", "") == target)
            if (json now = each.value("comparison", json(nullptr));
                now.is_object() && now.value("by_order", false))
                return now;
    return nullptr;
}

// Shows progress until the comparison that was ordered for TARGET ends or is given up.
Status follow(const std::string& target) {
    ProgressLine line;
    for (;; ::sleep(1)) {
        const auto status = read_status(Paths{});
        const json now = status ? ordered_in(*status, target) : json(nullptr);
        if (now.is_object()) {
            line.show(progress_text(now, wall_clock()));
            continue;
        }
        line.end();
        return status ? Status{} : fail("wq-tuned ended meanwhile", ESRCH);
    }
}

// The record of the last comparison of TARGET that ended at SINCE (s since 1970) or later, from the store at
// PATH. The daemon writes it after the end of the comparison, and a slow disk can delay it.
Result<VerdictRecord> wait_for_verdict(const std::string& path, const std::string& target,
                                       std::int64_t since) {
    const auto end = std::chrono::steady_clock::now() + kForTheDisk;
    for (;; ::usleep(kLookEvery)) {
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
    }
}

std::string path_of(const Paths& paths, const std::string& name, Knob file) {
    if (name == kDefaultTarget) return paths.parameters() + "/default_affinity_scope";
    constexpr const char* kFiles[] = {"/affinity_scope", "/affinity_strict", "/cpumask"};
    const std::string folder = name == kDefaultMask ? "" : "/" + name;
    return paths.workqueues() + folder + kFiles[static_cast<std::size_t>(file)];
}

// Adds the command that restores FILE of ENTRY, if that holds something of ours.
void add_command(const Paths& paths, const OwnedWriter& writer, Owned& entry, Knob file,
                 std::multimap<RestoreStep, std::string>& out) {
    if (file == Knob::strict && !entry.strict) return;
    const auto now = writer.read(entry, file);
    const Attribute& attribute = entry.of(file);
    if (!now || attribute.whose(*now) != Whose::ours) return;
    // Both come from files, which are not trusted.
    out.emplace(restore_step_of(entry, file), fmt::format("echo {} > {}\n", shell_word(attribute.baseline),
                                                          shell_quoted(path_of(paths, entry.name, file))));
}

}  // namespace

int order(const Options& options, const char* method, const std::vector<std::string>& arguments) {
    const auto done = [&]() -> Result<std::string> {
        if (!options.root.empty()) return fail("--root names a tree, which has no daemon", ESRCH);
        const auto bus = open_system_bus();
        if (!bus) return fail("the daemon cannot be reached: " + bus.error().text, ESRCH);
        return call_daemon(bus->get(), method, arguments);
    }();
    if (!done) return failed(done.error());
    if (!done->empty()) say(*done + "\n");
    return kOk;
}

int compare(const Options& options, const std::string& target, const std::string& with) {
    const std::int64_t began = wall_clock();
    if (const int ordered = order(options, "Compare", {target, with}); ordered != kOk) return ordered;
    if (!options.json)
        say(fmt::format(
            "The comparison goes on without this command; `wq-tunectl revert {}` ends it, and holds the "
            "baseline.\n",
            target));
    if (const auto done = follow(target); !done) return failed(done.error());
    const auto record = wait_for_verdict(Paths{}.verdicts(), target, began);
    if (!record) return failed(record.error());
    if (options.json)
        fmt::print("{}\n", json_text(to_json(*record)));
    else
        fmt::print("{} against {}: {}{}: {}\n", record->key.candidate, record->key.reference,
                   record->judged ? name_of(record->outcome) : "cut off",
                   record->reason.empty() ? "" : " (" + record->reason + ")", text_of(record->standing));
    return record->judged ? kOk : kFailure;
}

Shown history_shown(const std::vector<VerdictRecord>& records, const std::string& target) {
    Shown out;
    if (records.empty()) {
        out.add(fmt::format("No comparison{}{} has a verdict on this machine yet.",
                            target.empty() ? "" : " of ", target));
        return out;
    }
    Table table({"TIME", "TARGET", "COMPARED", "VERDICT", "PAIRS", "EFFECT"});
    table.paint(3, [](std::string_view verdict) -> std::string_view {
        return verdict == "improved" ? "\x1b[32m" : verdict == "regressed" ? "\x1b[33m" : "";
    });
    for (const VerdictRecord& r : records)
        table.add({local_time(r.time), r.target, r.key.reference + " -> " + r.key.candidate,
                   r.judged ? std::string(name_of(r.outcome)) : "cut off", std::to_string(r.standing.pairs),
                   effect_text(r.standing) + (r.reason.empty() ? "" : "; " + r.reason) +
                       (r.contention ? "; " + text_of(*r.contention) : "")});
    out.add(std::move(table));
    out.add(
        "Effects describe the pairs up to the verdict, which came when there was enough evidence, and so "
        "tend to be overstated.");
    return out;
}

int history(const Options& options, const std::string& target) {
    VerdictStore store(Paths{options.root}.verdicts());
    if (const auto read = store.read(); !read) return complain(read.error().text);
    std::vector<VerdictRecord> records = store.records();
    if (!target.empty()) std::erase_if(records, [&](const VerdictRecord& r) { return r.target != target; });
    if (options.json) {
        json verdicts = json::array();
        for (const VerdictRecord& record : records) verdicts.push_back(to_json(record));
        fmt::print("{}\n", json_text(json{{"verdicts", std::move(verdicts)}}));
        return kOk;
    }
    fmt::print("{}", history_shown(records, target).text());
    return kOk;
}

int undo(const Options& options) {
    const Paths paths{options.root};
    WorkqueueFs files(paths);
    OwnedStore store(paths.owned());
    if (const auto loaded = store.load(); !loaded) return complain(loaded.error().text);
    const OwnedWriter writer(files, store);
    std::multimap<RestoreStep, std::string> commands;
    for (Owned* entry : store.all())
        for (const Knob file : {entry->main.file, Knob::strict})
            add_command(paths, writer, *entry, file, commands);
    std::string out;
    for (const auto& [step, command] : commands) out += command;
    if (exists(paths.lab()))
        out += fmt::format("wq-tunectl{} ab --restore\n",
                           paths.root.empty() ? "" : " --root " + shell_quoted(paths.root));
    fmt::print("{}", out.empty() ? "# nothing to put back\n" : out);
    return kOk;
}

}  // namespace wq::ctl
