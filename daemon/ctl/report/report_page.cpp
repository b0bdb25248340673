// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_page.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace wq::ctl {

std::string escape(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
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

std::string cell(std::string_view label, std::string_view html, std::string_view kind) {
    return fmt::format("<td data-label=\"{}\"{}>{}</td>", label,
                       kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), html);
}

std::string table(const std::vector<Heading>& headings, std::string_view rows) {
    std::string head;
    for (const Heading& heading : headings)
        head += fmt::format("<th scope=\"col\"{}>{}</th>", heading.number ? " class=\"num\"" : "",
                            escape(heading.text));
    return fmt::format(
        "<div class=\"wide\"><table "
        "class=\"cards\">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        head, rows);
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
        escape(title), kReportStyle, known(head.kernel), utc_text(head.time), escape(version()),
        escape(head.daemon), escape(head.source), body, links);
}

}  // namespace wq::ctl
