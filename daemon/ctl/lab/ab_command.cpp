// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "ctl/lab/ab.h"
#include "ctl/lab/lab.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_source.h"
#include "evidence/json_values.h"

namespace wq::ctl {
namespace {

using lab::Figures;
using lab::Rounds;
using nlohmann::ordered_json;

// Runs the command of WHAT once, run number RUN, under ARM.
Result<Figures> measure(const lab::Lab& lab, const AbOptions& what, unsigned run, const std::string& arm) {
    const std::string name = fmt::format("run {} ({})", run, arm);
    const auto ran =
        lab.processes.run(what.command, what.metric.is_time() ? lab::Output::drop : lab::Output::capture);
    if (!ran) return tl::unexpected(ran.error().code == EINTR ? ran.error() : ran.error().in(name));
    if (!ran->failure.empty())
        return fail(fmt::format("{}: {}: {}", name, what.command.front(), ran->failure));
    const auto value =
        what.metric.is_time() ? static_cast<double>(ran->wall.count()) : what.metric.read(ran->output);
    if (!value) return tl::unexpected(value.error().in(name));
    return Figures{*value, lab::count_kworkers(lab.paths)};
}

Result<lab::Subject> scopes(const Paths& paths, const AbOptions& what) {
    Options options;
    options.root = paths.root;
    auto machine = read_machine(options);
    if (!machine) return tl::unexpected(machine.error());
    const auto found = std::ranges::find(machine->targets, what.target, &Workqueue::name);
    if (found == machine->targets.end())
        return fail(what.target + ": no such target; `wq-tunectl plan` lists them");
    return lab::scope_arms(paths, {machine->topology, machine->kernel}, std::move(*found), what.arms);
}

Result<lab::Subject> subject_of(const lab::Lab& lab, const AbOptions& what) {
    if (!what.target.empty()) return scopes(lab.paths, what);
    lab::Subject out = what.subject;
    if (what.file.empty()) return out;
    const auto path = lab::resolve_value_file(lab.paths.root, what.file);
    if (!path) return tl::unexpected(path.error().in("--file"));
    const auto now = lab::LabFiles(lab.paths, lab.processes, lab.devices).read_content(*path);
    if (!now) return tl::unexpected(now.error());
    out.owned = Owned{*path, now->inode, {Knob::value, now->text}};
    return out;
}

ordered_json report_of(const std::string& target, const Rounds& rounds, const std::string& stopped) {
    const bool time = rounds.counter().name == Metric().name();
    ordered_json out{{"target", word_or_null(target)},
                     {"metric", rounds.counter().name},
                     {"unit", time ? ordered_json("ns") : nullptr},
                     {"higher_is_better", rounds.counter().higher_is_better},
                     {"alpha", rounds.settings().alpha},
                     {"tolerance_percent", 100 * rounds.settings().tolerance},
                     {"rounds", rounds.count()},
                     {"max_rounds", rounds.settings().max_pairs},
                     {"dropped", rounds.dropped()},
                     {"stopped", stopped},
                     {"arms", ordered_json::array()}};
    for (const lab::Row& row : rounds.rows()) {
        const bool is_reference = &row == rounds.rows().data();
        ordered_json figures{{"runs", row.runs.size()}, {"values", ordered_json::array()}};
        for (const Figures& run : row.runs) figures["values"].push_back(run.value);
        const auto kworkers = lab::summary_of(row, &Figures::kworkers);
        figures["kworkers"] = kworkers ? ordered_json(kworkers->median) : nullptr;
        const auto summary = lab::summary_of(row, &Figures::value);
        for (const auto& [key, member] : {std::pair{"median", &lab::Summary::median},
                                          {"min", &lab::Summary::min},
                                          {"max", &lab::Summary::max}})
            figures[key] = summary ? ordered_json((*summary).*member) : nullptr;
        if (!is_reference) figures.update({{"reason", row.result.reason}, {"pairs", row.result.pairs}});
        out["arms"].push_back(lab::row_json("arm", row, is_reference, figures));
    }
    return out;
}

// VALUE with four significant digits, or all digits before the decimal point; a time in ms.
std::string number_text(bool time, double value) {
    if (time) value /= 1e6;
    return (value >= 1000 && value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value)) +
           (time ? " ms" : "");
}

// "improved" or "undecided (interrupted)". The number of pairs shows that all were used.
std::string verdict_cell(const ordered_json& arm) {
    if (arm["role"] == "reference") return "reference";
    if (arm["verdict"].is_null()) return "-";
    const std::string verdict = arm["verdict"], reason = arm["reason"];
    return reason.empty() || reason == kMaxPairsReason ? verdict : fmt::format("{} ({})", verdict, reason);
}

std::vector<std::string> cells_of(const ordered_json& arm, bool time) {
    const auto effect = effect_in(arm);
    std::vector<std::string> out{printable(arm["arm"].get<std::string>()),
                                 arm["pools"].is_null() ? "-" : arm["pools"].dump(),
                                 "-",
                                 arm["runs"].dump(),
                                 "-",
                                 "-",
                                 effect ? effect_text(*effect) : "-",
                                 verdict_cell(arm)};
    if (arm["median"].is_null()) return out;
    out[2] = fmt::format("{:.0f}", arm["kworkers"].get<double>());
    out[4] = number_text(time, arm["median"]);
    out[5] = number_text(time, arm["min"]) + " .. " + number_text(time, arm["max"]);
    return out;
}

std::string table_of(const ordered_json& report) {
    Table table({"ARM", "POOLS", "KWORKERS", "RUNS", "MEDIAN", "SPREAD", "EFFECT", "VERDICT"});
    for (const auto& arm : report["arms"]) table.add(cells_of(arm, !report["unit"].is_null()));
    std::string out = table.text() + wrapped("Effects are medians of all pairs, with the 95% interval.");
    for (const auto& [reason, count] : report["dropped"].items())
        out += wrapped(fmt::format("Dropped: {} ({}).", plural(count.get<unsigned>(), "round"), reason));
    return out;
}

int compare(const lab::Lab& lab, const AbOptions& what) {
    const auto subject = subject_of(lab, what);
    if (!subject) return complain(subject.error().text);
    Rounds rounds(subject->rows, what.settings, {what.metric.name(), what.higher_is_better}, what.all_pairs);
    unsigned runs = 0;
    OwnedStore store(lab.paths.lab(), OwnedStore::Of::lab);
    const auto done = lab::run_guarded(lab, "ab", [&] {
        return lab::compare(lab, store, *subject, rounds, what.warmup, [&](std::size_t arm) {
            runs++;
            return measure(lab, what, runs, runs <= what.warmup ? "warm-up" : subject->rows[arm].arm);
        });
    });
    if (!done) complain(done.error().text);
    const ordered_json report = report_of(subject->name, rounds, done ? "" : done.error().text);
    if (what.json)
        fmt::print("{}\n", json_text(report));
    else if (rounds.count() > 0)
        fmt::print("{}", table_of(report));
    return done ? kOk : kFailure;
}

}  // namespace

int ab(const std::string& root, const AbOptions& what) {
    if (root.empty() && ::geteuid() != 0) return complain("ab changes settings of the kernel: only root can");
    if (!what.target.empty())  // before anything is created below ROOT
        if (const auto read = read_topology("live", root); !read) return complain(read.error().text);
    lab::Processes processes;
    lab::Devices devices(root, lab::runs(processes));
    const lab::Lab lab{Paths{root}, processes, devices};
    return lab::in_lab(lab, what.restore, [&] { return compare(lab, what); });
}

}  // namespace wq::ctl
