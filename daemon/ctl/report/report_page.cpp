// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace wq::ctl {
namespace {

// Colours: in both themes, text has a contrast of at least 4.5 to its background (WCAG AA), outlines of at
// least 3. Colour is never the only sign: isolated CPUs also differ in their borders, lines in their dashes,
// verdicts in their words.
constexpr const char* kStyle = R"(:root {
  color-scheme: light dark;
  --ground: #fcfbf9; --ink: #23262b; --muted: #5a6069; --rule: #d9d6d0; --box: #f3f1ec;
  --cell: #d5e0ea; --edge: #6b849c; --cell-ink: #1d2c3a; --line: #2f5d8a; --worse: #9c3f2b; --better: #2b6a47; --band: #e3e9ee;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #17191c; --ink: #e3e1dc; --muted: #a4a9b1; --rule: #3b3f45; --box: #1f2226;
    --cell: #2d3e4f; --edge: #7391ae; --cell-ink: #dce6ef; --line: #8fb8de; --worse: #eba08b; --better: #8bcaa3; --band: #262e36;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  overflow-wrap: break-word; font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif; }
code, .num { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .875em; unicode-bidi: isolate; overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; font-weight: 600; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--rule); font-size: 1.25rem; font-weight: 600; }
main > section:first-child h2 { margin-top: 1.25rem; }
h3 { margin: 1.5rem 0 .25rem; font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
p { margin: .25rem 0 .75rem; max-width: 46rem; }
a { color: var(--line); }
small, .quiet { color: var(--muted); font-size: .875rem; font-weight: 400; }
header dl { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 0 0 1rem; }
header dl div { min-width: 0; }
dt { color: var(--muted); font-size: .8125rem; }
dd { margin: 0; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 0 1.25rem; }
nav a { padding: .25rem 0; }

ul { padding: 0; list-style: none; }
ul.result { margin: 0 0 1.5rem; max-width: 60rem; }
ul.result ul { margin: 0; }
ul.result > li { margin: .375rem 0; padding-left: .75rem; border-left: 3px solid var(--rule); }
ul.result > li:has(.improved) { border-color: var(--better); }
ul.result > li:has(.regressed) { border-color: var(--worse); }

.packages { display: flex; flex-wrap: wrap; gap: 1rem; }
.package { min-width: 0; max-width: 100%; padding: .75rem; border: 1px solid var(--edge); border-radius: 4px; }
.package > p { margin: 0 0 .5rem; max-width: none; }
.llcs, .shards { display: flex; flex-wrap: wrap; gap: .5rem; }
.llc { min-width: 0; padding: .5rem; background: var(--box); border-radius: 3px; }
.llc > p { margin: 0 0 .375rem; max-width: none; font-size: .8125rem; line-height: 1.35; }
.llc small, .package small { font-size: .8125rem; overflow-wrap: anywhere; }
.shard { display: flex; flex-wrap: wrap; gap: 4px 6px; padding: 4px; border: 1px solid var(--edge); border-radius: 3px;
  max-width: 17rem; }
.shard.loose { border-style: dashed; }
.core { display: flex; gap: 1px; }
.core b { display: block; min-width: 1.75rem; height: 1.375rem; padding: 0 3px; border: 1px solid var(--edge);
  border-radius: 2px; background: var(--cell); color: var(--cell-ink); text-align: center;
  font: 400 .75rem/1.25rem ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.core b.i { background: none; border: 2px solid var(--line); color: var(--ink); line-height: 1.125rem; }
.core b.p { background: none; border: 3px double var(--line); color: var(--ink); line-height: 1rem; }
.core b.n { border-bottom: 4px solid var(--worse); line-height: 1rem; }
.core b.o { background: none; border: 1px dotted var(--muted); color: var(--muted); text-decoration: line-through; }
.shard.sample { width: 2.5rem; height: 1.375rem; }
.many .core b { min-width: 6px; width: 6px; height: 12px; padding: 0; border-radius: 1px; }
.many .core b:not(.i, .p, .o) { background: var(--edge); }
.many .shard { gap: 3px; padding: 2px; max-width: 10.5rem; }
.many .llcs, .many .shards { gap: .375rem; }
.many .llc { max-width: 12rem; padding: .25rem; }
.many .llc > p { margin: 0 0 .125rem; }
.many .llc > p, .many .llc small { font-size: .75rem; }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .75rem 0; font-size: .875rem; }
.key li { display: flex; align-items: center; gap: .5rem; min-width: 0; overflow-wrap: anywhere; }

.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th { color: var(--muted); font-weight: 400; text-align: left; vertical-align: bottom; white-space: nowrap; }
th, td { padding: .375rem .75rem .375rem 0; border-bottom: 1px solid var(--rule); }
td { vertical-align: top; }
td code { font-size: .8125rem; }
td.names { min-width: 9rem; }
td.names code { display: inline-block; margin-right: .375rem; }
td.bar { width: 12rem; }
td.bar svg { width: 12rem; max-width: 100%; }
th:empty, td details { margin: 0; }
td.num, th.num { text-align: right; white-space: nowrap; }
th.num { font-family: inherit; font-size: inherit; }
td.when, td.short { white-space: nowrap; }
td .quiet { display: block; font-size: .8125rem; }

.trial { margin: 1.5rem 0 2.5rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
figure { flex: 1 1 20rem; min-width: 0; max-width: 34rem; margin: 0; }
figcaption { margin-bottom: .25rem; color: var(--muted); font-size: .8125rem; }
figcaption strong { color: var(--ink); font-weight: 600; }
.marks { display: flex; flex-wrap: wrap; gap: .125rem 1.25rem; margin: .25rem 0 0; color: var(--muted); font-size: .8125rem; }
.marks li { display: flex; gap: .5rem; min-width: 0; }
.marks svg { flex: none; width: 24px; height: 12px; margin-top: .25rem; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--muted); font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
svg text.mark { fill: var(--ink); }
svg .grid { stroke: var(--rule); fill: none; }
svg .zero, svg .limit { stroke: var(--ink); fill: none; }
svg .limit { stroke-dasharray: 2 3; }
svg .band { fill: var(--band); }
svg .median, svg .dots, svg .range, svg .point { stroke: var(--line); fill: none; }
svg .dots, svg .point { stroke-linecap: round; }
svg .range { stroke-width: 3; }
svg .point { stroke-width: 8; }
svg .beyond { fill: var(--line); }
svg .worse { stroke: var(--worse); fill: none; stroke-width: 1.75; }
svg .better { stroke: var(--better); fill: none; stroke-width: 1.75; stroke-dasharray: 6 3; }
.regressed, .improved, .undecided, .cut-off { font-weight: 600; }
.regressed { color: var(--worse); }
.improved { color: var(--better); }
details { margin-top: .5rem; }
summary { color: var(--muted); font-size: .875rem; cursor: pointer; }
details > :not(summary) { margin-top: .5rem; }
.pairs table { width: auto; }

@media screen and (max-width: 44rem) {
  body { padding: 1rem; }
  header dl { display: block; }
  header dl div { display: flex; gap: .75rem; }
  header dt { flex: none; width: 4.5rem; line-height: 1.5rem; }
  .cards td.bar { width: auto; }
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  .cards td, .cards td.num { display: block; position: relative; min-height: 1.75rem; padding: .125rem 0 .125rem 6.5rem;
    border: 0; text-align: left; overflow-wrap: anywhere; }
  .cards td, .cards td.num, .cards td.short { white-space: normal; }
  .cards td::before { content: attr(data-label); position: absolute; left: 0; color: var(--muted);
    font-family: system-ui, sans-serif; font-size: .8125rem; }
  .cards td:empty { display: none; }
}
@media print {
  :root { --ground: #fff; --ink: #000; --muted: #444; --rule: #bbb; --box: #fff; --cell: #e4e9ee; --edge: #777; --cell-ink: #000;
    --line: #24507a; --worse: #8a2f1c; --better: #1f5436; --band: #eee; color-scheme: light; }
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .pairs { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .llc, .shard, .trial, figure, tr { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 8pt; }
}
)";

}  // namespace

std::string escape(std::string_view text) {
    static const std::map<char, const char*> kEscaped{
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    std::string out;
    for (const char c : wq::printable(text)) {
        const auto escaped = kEscaped.find(c);
        escaped == kEscaped.end() ? out += c : out += escaped->second;
    }
    return out;
}

std::string code(std::string_view text) {
    return "<code>" + escape(text) + "</code>";
}

std::string prose(std::string_view text) {
    std::string out;
    for (;;) {
        const auto open = text.find('`');
        const auto close = open == text.npos ? text.npos : text.find('`', open + 1);
        if (close == text.npos) return out + escape(text);
        out += escape(text.substr(0, open)) + code(text.substr(open + 1, close - open - 1));
        text.remove_prefix(close + 1);
    }
}

std::string quiet(std::string_view text) {
    return text.empty() ? "" : fmt::format("<span class=\"quiet\">{}</span>", escape(text));
}

std::string table(const std::vector<Column>& columns, const std::vector<Cells>& rows, std::string_view kind) {
    std::string head, body;
    const auto attribute = [](std::string_view kind) {
        return kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
    };
    for (const Column& column : columns)
        head += fmt::format("<th scope=\"col\"{}>{}</th>", attribute(column.kind == "num" ? "num" : ""),
                            escape(column.heading));
    for (const Cells& row : rows) {
        body += "<tr>";
        for (std::size_t i = 0; i < columns.size(); i++)
            body += fmt::format("<td data-label=\"{}\"{}>{}</td>", escape(columns[i].heading),
                                attribute(columns[i].kind), row[i]);
        body += "</tr>\n";
    }
    return fmt::format(
        "<div class=\"wide\"><table{}>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        attribute(kind), head, body);
}

std::string folded_table(const std::vector<Column>& columns, const std::vector<Cells>& rows, std::size_t most,
                         std::string_view what) {
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), most));
    std::string out = table(columns, {rows.begin(), end});
    if (rows.size() <= most) return out;
    return out + folded(plural(rows.size() - most, what), table(columns, {end, rows.end()}));
}

std::string section(std::string_view id, std::string_view title, std::string_view html) {
    return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, html);
}

std::string folded(std::string_view summary, std::string_view html) {
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(summary), html);
}

std::string report_page(const ReportHead& head, const std::string& body) {
    const auto known = [](const std::string& text) {
        return text.empty() ? std::string("not known") : escape(text);
    };
    std::string links;
    for (const auto& [id, name] : {std::pair{"result", "Result"},
                                   {"trials", "Comparisons"},
                                   {"plan", "Plan"},
                                   {"machine", "Machine"},
                                   {"history", "History"}})
        if (body.find(fmt::format("<section id=\"{}\"", id)) != std::string::npos)
            links += fmt::format("<a href=\"#{}\">{}</a>\n", id, name);
    const std::string title = head.host.empty() ? head.source : head.host;
    return fmt::format(
        R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}: workqueues</title>
<style>
{1}</style>
</head>
<body>
<header>
<h1>{0}</h1>
<dl>
<div><dt>Kernel</dt><dd>{2}</dd></div>
<div><dt>Written</dt><dd>{3}</dd></div>
<div><dt>wq-tuned</dt><dd>{4}</dd></div>
<div><dt>Daemon</dt><dd>{5}</dd></div>
<div><dt>Source</dt><dd>{6}</dd></div>
</dl>
<nav>{8}</nav>
</header>
<main>
{7}</main>
</body>
</html>
)",
        escape(title), kStyle, known(head.kernel), utc_text(head.time), escape(version()),
        escape(head.daemon), escape(head.source), body, links);
}

}  // namespace wq::ctl
