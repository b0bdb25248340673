// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/bench/bench_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ctl/bench/bench_load.h"
#include "ctl/render/terminal.h"

namespace wq::bench {
namespace {

using ctl::printable;
using ctl::wrapped;

std::string microseconds(double ns) {
    return fmt::format("{:.1f}", ns / 1000);
}

std::string llcs_text(const std::vector<unsigned>& cores) {
    const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
    const std::string sizes =
        *least == *most ? plural(*most, "core") : fmt::format("{} to {} cores", *least, *most);
    return fmt::format("{} of {}", plural(cores.size(), "LLC"), sizes);
}

std::string size_text(const Host& host) {
    return host.cache_shard_size ? std::to_string(*host.cache_shard_size) : "-";
}

constexpr const char* kLegend =
    "Medians of the runs. P50, P90, P99, CPU: microseconds, of a write and of CPU time per work item. "
    "KWORKERS: those of all unbound workqueues. EFFECT: of the time per byte, the median "
    "of the pairs and its 95% interval.";

}  // namespace

std::string host_text(const Host& host) {
    std::string out = host.cpu.empty() ? "unknown CPU" : printable(host.cpu);
    out += ", " + plural(host.cpus, "CPU") + ", " + plural(host.cores, "core");
    if (!host.llc_cores.empty()) out += ", " + llcs_text(host.llc_cores);
    if (host.is_virtual) out += *host.is_virtual ? ", virtual" : ", not virtual";
    out += ", kernel " + printable(host.kernel);
    if (host.cache_shard_size) out += fmt::format(", cache_shard_size {}", *host.cache_shard_size);
    return out;
}

std::string settings_text(const BenchResult& result) {
    const Settings& s = result.settings;
    return fmt::format("{} with {} of {} KiB in flight, {} of {:g} s; dm-crypt over null_blk; wq-tuned {}",
                       plural(s.writers, "writer"), plural(s.depth, "write"), kBlock / 1024,
                       plural(result.rounds, "round"), s.seconds, printable(result.version));
}

std::string effect_text(const BenchResult& result, const Row& row) {
    if (&row == result.rows.data()) return "reference";
    if (!row.effect) return "-";
    const std::string out = wq::effect_text(*row.effect);
    return row.verdict.empty() ? out : out + ", " + printable(row.verdict);
}

std::string finding(const BenchResult& result) {
    const std::string reference = result.rows.empty() ? "" : printable(result.rows.front().scope);
    if (result.rounds == 0) return "Nothing was measured.";
    if (const Row* best = best_of(result))
        return fmt::format("{} against {}, this kernel's scope: {}.", printable(best->scope), reference,
                           wq::effect_text(*best->effect));
    return fmt::format("No scope is known to be better than {}, this kernel's.", reference);
}

std::vector<std::string> figure_names() {
    return {"POOLS", "KWORKERS", "ITEMS/S", "MB/S", "P50", "P90", "P99", "CPU"};
}

std::vector<std::string> figure_texts(const Row& row) {
    std::vector<std::string> out{row.pools ? std::to_string(*row.pools) : "-"};
    if (row.runs.empty()) {
        out.resize(figure_names().size(), "-");
        return out;
    }
    const Figures f = medians_of(row);
    out.push_back(fmt::format("{:.0f}", f.kworkers));
    out.push_back(f.items_per_s ? fmt::format("{:.0f}", *f.items_per_s) : "-");
    out.push_back(fmt::format("{:.1f}", f.mb_per_s));
    for (const double ns : {f.p50, f.p90, f.p99}) out.push_back(microseconds(ns));
    out.push_back(f.cpu ? microseconds(*f.cpu) : "-");
    return out;
}

std::string bench_table(const BenchResult& result, std::size_t columns, bool colour) {
    std::vector<std::string> header{"SCOPE"};
    for (std::string& name : figure_names()) header.push_back(std::move(name));
    header.emplace_back("EFFECT");
    ctl::Table table(std::move(header));
    for (const Row& row : result.rows) {
        std::vector<std::string> cells{printable(row.scope)};
        for (std::string& text : figure_texts(row)) cells.push_back(std::move(text));
        cells.push_back(effect_text(result, row));
        table.add(std::move(cells));
    }
    std::string out = table.text(columns, colour) + "\n" + wrapped(finding(result), columns) +
                      wrapped(host_text(result.host), columns) + wrapped(settings_text(result), columns) +
                      wrapped(kLegend, columns);
    if (!result.missing.empty()) out += wrapped("Not counted: " + printable(result.missing), columns);
    if (!result.stopped.empty()) out += wrapped("Ended early: " + printable(result.stopped), columns);
    return out;
}

std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour) {
    std::vector<std::string> header{"#", "KERNEL", "SHARD", "SCOPE"};
    for (std::string& name : figure_names()) header.push_back(std::move(name));
    header.emplace_back("EFFECT");
    ctl::Table table(std::move(header));
    std::string legend;
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [file, result] = results[i];
        for (const Row& row : result.rows) {
            std::vector<std::string> cells{std::to_string(i + 1), printable(result.host.kernel),
                                           size_text(result.host), printable(row.scope)};
            for (std::string& text : figure_texts(row)) cells.push_back(std::move(text));
            cells.push_back(effect_text(result, row));
            table.add(std::move(cells));
        }
        legend += wrapped(fmt::format("{}: {}: {}; {}", i + 1, printable(file), host_text(result.host),
                                      settings_text(result)),
                          columns);
    }
    return table.text(columns, colour) + "\n" + legend +
           wrapped("SHARD: workqueue.cache_shard_size. Effects are against the reference of the same file.",
                   columns) +
           wrapped(kLegend, columns);
}

}  // namespace wq::bench
