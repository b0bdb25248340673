// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/page.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"

namespace wq::ctl {
namespace {

// Colours: in both themes, text has a contrast of at least 4.5 to its background (WCAG AA), outlines of at
// least 3. Colour is never the only sign: isolated CPUs also differ in their borders, states and verdicts in
// their words.
constexpr const char* kStyle = R"(:root {
  color-scheme: light dark;
  --ground: #fcfbf9; --ink: #23262b; --muted: #5a6069; --rule: #d9d6d0; --box: #f3f1ec;
  --cell: #d5e0ea; --edge: #6b849c; --line: #2f5d8a; --worse: #9c3f2b; --better: #2b6a47; --band: #e3e9ee;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #17191c; --ink: #e3e1dc; --muted: #a4a9b1; --rule: #3b3f45; --box: #1f2226;
    --cell: #2d3e4f; --edge: #7391ae; --line: #8fb8de; --worse: #eba08b; --better: #8bcaa3; --band: #262e36;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  overflow-wrap: anywhere; font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; font-weight: 600; line-height: 1.2; }
h2 { margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--rule); font-size: 1.25rem; font-weight: 600; }
p { margin: .25rem 0 .75rem; max-width: 60rem; }
header p, small, th, summary, figcaption { color: var(--muted); font-size: .875rem; font-weight: 400; }
summary { cursor: pointer; }

table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .875rem; }
th { text-align: left; white-space: nowrap; }
th, td { padding: .375rem .75rem .375rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
.improved, .kept, .set { color: var(--better); }
.regressed, .external, .quarantined, .unsupported, .reverted { color: var(--worse); }

.packages, .llcs, .shards, .plots, .key { display: flex; flex-wrap: wrap; gap: .5rem 1rem; }
.package, .llc, .shard, .key li, figure { min-width: 0; max-width: 100%; }
.package { padding: .75rem; border: 1px solid var(--edge); border-radius: 4px; }
.llc { padding: .5rem; background: var(--box); border-radius: 3px; }
.llc p, .package p { margin: 0 0 .375rem; font-size: .8125rem; }
.shard { display: flex; flex-wrap: wrap; gap: 4px 6px; padding: 4px; border: 1px solid var(--edge); border-radius: 3px; max-width: 17rem; }
.shard.loose { border-style: dashed; }
.core { display: flex; gap: 1px; }
.core b { min-width: 1.75rem; height: 1.375rem; padding: 0 3px; border: 1px solid var(--edge); border-radius: 2px; background: var(--cell);
  text-align: center; font: 400 .75rem/1.25rem ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.core b.i { background: none; border: 2px solid var(--line); line-height: 1.125rem; }
.core b.n { border-bottom: 4px solid var(--worse); line-height: 1rem; }
.core b.o { background: none; border: 1px dotted var(--muted); color: var(--muted); text-decoration: line-through; }
.key { padding: 0; list-style: none; font-size: .875rem; }
.key li { display: flex; gap: .5rem; }

figure { flex: 0 1 26rem; margin: 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--muted); font: 11px system-ui, "Segoe UI", Roboto, sans-serif; }
svg .zero { stroke: var(--ink); }
svg .band { fill: var(--band); }
svg .median, svg .dots { stroke: var(--line); stroke-linecap: round; }
svg .dots { stroke-width: 5; }

@media screen and (max-width: 44rem) {
  body { padding: 1rem; }
  thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  td { display: block; position: relative; min-height: 1.75rem; padding: .125rem 0 .125rem 6.5rem; border: 0; }
  td::before { content: attr(data-label); position: absolute; left: 0; color: var(--muted); font-size: .8125rem; }
}
@media print {
  :root { --ground: #fff; --ink: #000; --muted: #444; color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .llc, .shard, figure, tr { break-inside: avoid; }
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

std::string Table::html() const {
    std::string head, body;
    const auto& headings = rows_.front();
    for (const std::string& heading : headings)
        head += fmt::format("<th scope=\"col\">{}</th>", escape(heading));
    for (std::size_t r = 1; r < rows_.size(); r++) {
        body += "<tr>";
        for (std::size_t i = 0; i < headings.size(); i++) {
            const std::string cell = escape(rows_[r][i]);
            const bool painted = painted_ == i && !colour_of_(rows_[r][i]).empty();
            body += fmt::format("<td data-label=\"{}\"{}>{}</td>", escape(headings[i]),
                                painted ? fmt::format(" class=\"{}\"", cell) : "", cell);
        }
        body += "</tr>\n";
    }
    return fmt::format("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table>\n", head, body);
}

std::string Shown::text() const {
    std::string out;
    for (const auto& part : parts_) {
        const auto* table = std::get_if<Table>(&part);
        out += table != nullptr ? table->text() : wrapped(std::get<std::string>(part));
    }
    return out;
}

std::string Shown::html() const {
    std::string out;
    for (const auto& part : parts_)
        if (const auto* table = std::get_if<Table>(&part); table != nullptr)
            out += table->html();
        else if (const auto& paragraph = std::get<std::string>(part); !paragraph.empty())
            out += fmt::format("<p>{}</p>\n", escape(paragraph));
    return out;
}

std::string section(std::string_view title, std::string_view html) {
    return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", title, html);
}

std::string page(std::string_view title, std::string_view head, std::string_view body) {
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
<p>{2}</p>
</header>
<main>
{3}</main>
</body>
</html>
)",
        escape(title), kStyle, escape(head), body);
}

}  // namespace wq::ctl
