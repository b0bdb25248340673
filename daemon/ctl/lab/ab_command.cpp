// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/lab/ab.h"
#include "ctl/lab/lab.h"
#include "ctl/machine.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/topology_source.h"

namespace wq::ctl {
namespace {

using lab::Figures;
using lab::Rounds;
using nlohmann::ordered_json;

// Runs the command of WHAT once, run number RUN, under ARM.
Result<Figures> measure(const lab::Lab& lab, const AbOptions& what, unsigned run, const std::string& arm) {
    using lab::Output;
    const Output output = what.metric.is_time() ? (what.show_output ? Output::show : Output::drop)
                          : what.show_output    ? Output::capture_and_show
                                                : Output::capture;
    const std::string name = fmt::format("run {} ({})", run, arm);
    const auto ran = lab.processes.run(what.command, output);
    if (!ran) return tl::unexpected(ran.error().code == EINTR ? ran.error() : ran.error().in(name));
    if (!ran->failure.empty() && !what.ignore_failure)
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

Result<lab::Subject> subject_of(const Paths& paths, const AbOptions& what) {
    if (!what.target.empty()) return scopes(paths, what);
    lab::Subject out = what.subject;
    for (lab::Setting& setting : out.settings) {
        const auto path = lab::resolve_value_file(paths.root, what.file);
        if (!path) return tl::unexpected(path.error().in("--file"));
        setting.path = *path;
    }
    return out;
}

// Checks what can fail before anything is created below the root.
Status check_first(const std::string& root, const AbOptions& what) {
    if (root.empty() && ::geteuid() != 0) return fail("ab changes settings of the kernel: only root can");
    if (!what.target.empty())
        if (const auto read = read_topology("live", root); !read) return tl::unexpected(read.error());
    if (!what.file.empty())
        if (const auto path = lab::resolve_value_file(root, what.file); !path)
            return tl::unexpected(path.error().in("--file"));
    if (what.recording.empty()) return {};
    return lab::check_output(what.recording).map_error([](const Error& e) { return e.in("--export"); });
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
        for (const auto& [key, member] : {std::pair{"mean", &lab::Summary::mean},
                                          {"median", &lab::Summary::median},
                                          {"deviation", &lab::Summary::deviation},
                                          {"min", &lab::Summary::min},
                                          {"max", &lab::Summary::max}})
            figures[key] = summary ? ordered_json((*summary).*member) : nullptr;
        if (!is_reference) figures.update({{"reason", row.result.reason}, {"pairs", row.result.pairs}});
        out["arms"].push_back(lab::row_json("arm", row, is_reference, figures));
    }
    return out;
}

// VALUE with four significant digits, or all digits before the decimal point, in the unit for TYPICAL values.
std::string number_text(bool time, double typical, double value, bool with_unit = true) {
    struct Unit {
        double size;
        const char* name;
    };
    constexpr std::array units{Unit{1e9, " s"}, Unit{1e6, " ms"}, Unit{1e3, " us"}, Unit{0, " ns"}};
    const Unit& unit = *std::ranges::find_if(units, [&](const Unit& u) { return typical >= u.size; });
    if (time && unit.size > 0) value /= unit.size;
    return (value >= 1000 && value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value)) +
           (time && with_unit ? unit.name : "");
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
                                 "-",
                                 effect ? effect_text(*effect) : "-",
                                 verdict_cell(arm)};
    if (arm["median"].is_null()) return out;
    const auto text = [&](const char* key, bool with_unit = true) {
        return number_text(time, arm["median"], arm[key], with_unit);
    };
    out[2] = fmt::format("{:.0f}", arm["kworkers"].get<double>());
    out[4] = text("mean");
    out[5] = text("median");
    out[6] = text("min", false) + ".." + text("max");
    return out;
}

std::string table_of(const ordered_json& report) {
    Table table({"ARM", "POOLS", "KWORKERS", "RUNS", "MEAN", "MEDIAN", "SPREAD", "EFFECT", "VERDICT"});
    for (const auto& arm : report["arms"]) table.add(cells_of(arm, !report["unit"].is_null()));
    std::string out = table.text() + wrapped("Effects are medians of all pairs, with the 95% interval.");
    for (const auto& [reason, count] : report["dropped"].items())
        out += wrapped(fmt::format("Dropped: {} ({}).", plural(count.get<unsigned>(), "round"), reason));
    return out;
}

// The name of a comparison in a recording, whose reader splits lines at commas and does not know quotes.
std::string csv_name(const std::string& target, const std::string& arm) {
    std::string out = printable(target.empty() ? arm : target + " " + arm);
    for (char& c : out)
        if (c == ',' || c == '"') c = '_';
    return out;
}

// The pairs in the format that `wq-tunectl judge` reads, one `trial` per candidate. If higher values of the
// counter are better, the inverse is a cost.
std::string recording_of(const std::string& target, const Rounds& rounds) {
    const bool inverse = rounds.counter().higher_is_better;
    const char* counter = rounds.counter().name == Metric().name() ? "time" : inverse ? "1/metric" : "metric";
    std::string out = "trial,pair,arm,counter,value\n";
    for (std::size_t arm = 1; arm < rounds.rows().size(); arm++) {
        const std::string trial = csv_name(target, rounds.rows()[arm].arm);
        unsigned pair = 0;
        for (const PairValues& each : rounds.pairs(arm)) {
            pair++;
            for (const auto& [name, value] :
                 {std::pair{"baseline", each.reference}, {"candidate", each.candidate}})
                out +=
                    fmt::format("{},{},{},{},{}\n", trial, pair, name, counter, inverse ? 1 / value : value);
        }
    }
    return out;
}

int compare(const lab::Lab& lab, const AbOptions& what) {
    const auto subject = subject_of(lab.paths, what);
    if (!subject) return complain(subject.error().text);
    Rounds rounds(subject->rows, what.settings, {what.metric.name(), what.higher_is_better}, what.all_pairs);
    unsigned runs = 0;
    const auto done = lab::run_guarded(
        lab, "ab", subject->name.empty() ? "not put back" : subject->name + ": not put back", [&] {
            return lab::compare(lab, *subject, rounds, what.warmup, [&](std::size_t arm) {
                runs++;
                return measure(lab, what, runs, runs <= what.warmup ? "warm-up" : subject->rows[arm].arm);
            });
        });
    if (!done) complain(done.error().text);
    // The file first, because it remains if the terminal of stdout is gone.
    const auto saved =
        what.recording.empty() ? Status{} : write_output(what.recording, recording_of(subject->name, rounds));
    const ordered_json report = report_of(subject->name, rounds, done ? "" : done.error().text);
    if (what.json)
        fmt::print("{}\n", json_text(report));
    else if (rounds.count() > 0)
        fmt::print("{}", table_of(report));
    if (!saved) complain(saved.error().in("--export").text);
    return done && saved ? kOk : kFailure;
}

}  // namespace

int ab(const std::string& root, const AbOptions& what) {
    if (const auto first = check_first(root, what); !first) return complain(first.error().text);
    lab::Processes processes;
    lab::Devices devices(root, lab::runs(processes));
    const lab::Lab lab{Paths{root}, processes, devices};
    return lab::in_lab(lab, what.restore, [&] { return compare(lab, what); });
}

}  // namespace wq::ctl
