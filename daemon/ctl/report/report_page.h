// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wq::ctl {

// TEXT for an HTML element or a quoted attribute, whoever wrote it: what has a meaning there is escaped,
// control characters and bytes that are not UTF-8 become '?'.
std::string escape(std::string_view text);

// Pieces of a page. HTML is put in as it is, TEXT is escaped. A cell's LABEL stands beside it on a narrow
// screen; KIND: its class.
std::string code(std::string_view text);
std::string prose(std::string_view text);  // with what is between backquotes as code
std::string quiet(std::string_view text);  // "" for no text
std::string cell(std::string_view label, std::string_view html, std::string_view kind = "");
// A table whose rows become cards on a narrow screen. ROWS: "<tr>...</tr>".
struct Heading {
    std::string text;
    bool number = false;  // of a column of numbers
};
std::string table(const std::vector<Heading>& headings, std::string_view rows);
// Something that is shown when the reader asks for it.
std::string folded(std::string_view summary, std::string_view html);

// "2026-11-21 12:31 UTC", of s since 1970.
std::string utc_text(std::int64_t time);

// What stands at the head of a report.
struct ReportHead {
    std::string host;    // empty where it is not known
    std::string kernel;  // release, likewise
    std::string source;  // as --topology has it
    std::string daemon;  // its state, in words
    std::int64_t time = 0;
};

// The page. BODY is HTML: sections with the ids result, trials, plan, machine and history, which the
// links at the top lead to; those that are not there have none. It loads nothing,
// and says so to the browser.
std::string report_page(const ReportHead& head, const std::string& body);

// The page's style sheet.
extern const char* const kReportStyle;

}  // namespace wq::ctl
