// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_page.h"

#include <fmt/format.h>

#include <ctime>

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

std::string utc_text(std::int64_t time) {
    const auto seconds = static_cast<std::time_t>(time);
    std::tm utc{};
    char out[64] = "";
    if (::gmtime_r(&seconds, &utc) != nullptr) std::strftime(out, sizeof out, "%Y-%m-%d %H:%M UTC", &utc);
    return out;
}

std::string report_page(const ReportHead& head, const std::string& body) {
    const auto known = [](const std::string& text) {
        return text.empty() ? std::string("not known") : escape(text);
    };
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
<nav><a href="#machine">Machine</a> <a href="#plan">Plan</a> <a href="#trials">Trials</a> <a href="#history">History</a></nav>
</header>
<main>
{7}</main>
</body>
</html>
)",
        escape(title), kReportStyle, known(head.kernel), utc_text(head.time), escape(version()),
        escape(head.daemon), escape(head.source), body);
}

}  // namespace wq::ctl
