// SPDX-License-Identifier: LGPL-2.1-or-later
// Orders (each is one call to the daemon), `compare`, and `undo`.
#include "ctl/commands/control_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/shell_word.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"
#include "owned/mask_store.h"
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
    if (const auto done = follow(target); !done) return failed(done.error());
    const auto record = wait_for_verdict(Paths{}.verdicts(), target, began, kForTheDisk);
    if (!record) return failed(record.error());
    if (options.json)
        fmt::print("{}\n", dump_json(to_json(*record)));
    else
        fmt::print("{} against {}: {}{}: {}\n", record->key.candidate, record->key.reference,
                   record->judged ? name_of(record->outcome) : "cut off",
                   record->reason.empty() ? "" : " (" + record->reason + ")", text_of(record->standing));
    return record->judged ? kOk : kFailure;
}

namespace {

// The command that writes WORD to PATH. Both come from files, which are not trusted: they are quoted for the
// shell, but for plain words.
std::string echo_text(const std::string& word, const std::string& path) {
    const bool plain =
        !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_01") == std::string::npos;
    return fmt::format("echo {} > {}\n", plain ? word : shell_quoted(word), shell_quoted(path));
}

// The commands that restore one entry. Only files whose current value is ours are restored.
std::string commands(const Paths& paths, const WorkqueueFs& files, const BaselineEntry& entry) {
    std::string out;
    const std::string folder = paths.workqueues() + "/" + entry.name;
    const auto scope = files.read_scope(entry.name, entry.inode);
    if (scope && scope->word != entry.scope && entry.may_be_ours(scope->word))
        out += echo_text(entry.scope, entry.name == kDefaultTarget
                                          ? paths.parameters() + "/default_affinity_scope"
                                          : folder + "/affinity_scope");
    if (!entry.may_strict || !entry.strict) return out;
    const auto strict = files.read_strict(entry.name, entry.inode);
    if (strict && *strict != *entry.strict)
        out += echo_text(*entry.strict ? "1" : "0", folder + "/affinity_strict");
    return out;
}

// Like the function above, for a mask.
std::string commands(const Paths& paths, const WorkqueueFs& files, const MaskEntry& entry) {
    const auto now = files.read_mask(entry.name);
    if (!now || now->inode != entry.inode || now->cpus == entry.before() || !entry.may_be_ours(now->cpus))
        return "";
    const std::string folder = entry.name == kDefaultMask ? "" : "/" + entry.name;
    return fmt::format("echo {} > {}\n", shell_quoted(entry.baseline),
                       shell_quoted(paths.workqueues() + folder + "/cpumask"));
}

}  // namespace

int undo(const Options& options) {
    const Paths paths{options.root};
    const WorkqueueFs files(paths);
    BaselineStore store(paths.baseline());
    if (const auto loaded = store.load(); !loaded) return complain(loaded.error().text);
    MaskStore masks(paths.masks());
    const auto loaded = masks.load();
    std::string out;
    for (const auto& [name, entry] : store.entries()) out += commands(paths, files, entry);
    for (const auto& [name, entry] : masks.entries()) out += commands(paths, files, entry);
    const std::string root = paths.root.empty() ? "" : " --root " + shell_quoted(paths.root);
    if (exists(paths.lab())) out += fmt::format("wq-tunectl{} ab --restore\n", root);
    if (loaded && out.empty()) out = "# nothing to put back\n";
    fmt::print("{}", out);
    return loaded ? int{kOk} : complain(loaded.error().text);
}

}  // namespace wq::ctl
