// SPDX-License-Identifier: LGPL-2.1-or-later
// A page for a browser: its parts, its plots, the sections of a report. The page of `bench` uses them too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/comparison.h"
#include "evidence/verdicts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "plan/plan.h"

namespace wq::ctl {

// Escapes TEXT for an HTML element or a quoted attribute. TEXT is not trusted: control characters and bytes
// that are not UTF-8 become '?'.
std::string escape(std::string_view text);

// Parts of a page. HTML is inserted unchanged, TEXT is escaped.
std::string code(std::string_view text);
std::string prose(std::string_view text);  // text between backquotes becomes code
std::string quiet(std::string_view text);  // "" for empty text
// A table. On a narrow screen its rows become cards, whose cells have the headings beside them. A cell is
// HTML.
struct Column {
    std::string heading;
    std::string_view kind = "";  // the class of its cells; "num" are numbers
};
using Cells = std::vector<std::string>;
std::string table(const std::vector<Column>& columns, const std::vector<Cells>& rows,
                  std::string_view kind = "cards");
// The first MOST rows; the others are folded, as "3 WHATs".
std::string folded_table(const std::vector<Column>& columns, const std::vector<Cells>& rows, std::size_t most,
                         std::string_view what);
std::string section(std::string_view id, std::string_view title, std::string_view html);
// HTML that is hidden until the reader opens it.
std::string folded(std::string_view summary, std::string_view html);

// The head of a report.
struct ReportHead {
    std::string host;    // empty if not known
    std::string kernel;  // release; empty if not known
    std::string source;  // in the format of --topology
    std::string daemon;  // its state as text
    std::int64_t time = 0;
};

// The complete page with links to the sections of BODY. It loads nothing, and forbids it with a
// Content-Security-Policy.
std::string report_page(const ReportHead& head, const std::string& body);

// The effect of each pair as SVG: percent of the cost, above zero is worse. Values above
// kMostPercent are drawn at the edge with a note. TITLE is for the vertical axis. LABEL describes the
// drawing as text. TOLERANCE: a fraction; drawn as a line unless it is 0.
inline constexpr double kMostPercent = 1000;
std::string effects_svg(const std::vector<double>& percent, const Effect& effect, double tolerance,
                        const std::string& title, const std::string& label);

// The evidence after each pair.
struct RunningEvidence {
    std::vector<double> log_regressed;  // natural logarithms
    std::vector<double> log_improved;
};

// Draws the evidence as lines over a logarithmic axis. LOG_ENOUGH: the logarithm of the evidence for a
// decision (m/alpha), if known. Values below 1/1000 are drawn at 1/1000.
std::string evidence_svg(const RunningEvidence& evidence, double log_enough, const std::string& label);

// An effect as a dot (the median) and a bar (the interval), with a vertical line at zero, on a scale of
// -END..END percent. An effect outside of the scale is drawn as an arrow.
std::string effect_bar_svg(const Effect& effect, double end, const std::string& label);

// A legend below a drawing with the meaning of each mark. MARK is the class of the mark in the drawing.
struct Mark {
    const char* mark;
    std::string text;
};
std::string legend_html(const std::vector<Mark>& marks);

// Evidence from its natural logarithm: "80", "1e323".
std::string short_evidence(double log);

// The sections of a report as HTML. STATUS is the daemon's, with states and baselines; null if no daemon was
// asked. TRIALS are comparisons, oldest first, as in the store.

struct ResultInput {
    const std::vector<VerdictRecord>& trials;
    const std::vector<PlanLine>& plan;  // for the current scopes
    const nlohmann::json& status;
};
// What was improved and by how much, what was not, and what remains to be done. Of several comparisons of a
// target with the same arms, the last judged one counts.
std::string result_html(const ResultInput& input);

// One row per group of targets that differ only in their names.
std::string plan_html(const std::vector<PlanLine>& plan, const nlohmann::json& status);

// The plots of TRIALS, and the table of all TRIALS. Both show the latest first and fold all but the last
// few. history_html() returns "" if there are none. KERNEL: kernel_key(); empty if not known.
std::string trials_html(const std::vector<VerdictRecord>& trials);
std::string history_html(const std::vector<VerdictRecord>& trials, const std::string& kernel = "");
// The verdict as a word with its mark and colour.
std::string verdict_html(const VerdictRecord& record);
// The evidence of a counter after each of its DIFFERENCES, as the judge computed it from them.
RunningEvidence running_evidence(const std::vector<double>& differences, double tolerance);

struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;  // its own pods are listed beside the drawing
    unsigned shard_size = 8;   // cores
    const Isolation& isolation;
};
// Packages, LLCs, shards, cores, threads. A core is one element in each of its LLCs (one, but on powerpc),
// with the attribute data-core, its lowest CPU. With more than 64 CPUs the drawing is folded.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
