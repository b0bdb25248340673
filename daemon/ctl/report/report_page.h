// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace wq::ctl {

// Escapes TEXT for an HTML element or a quoted attribute. TEXT is not trusted: control characters and bytes
// that are not UTF-8 become '?'.
std::string escape(std::string_view text);

// Parts of a page. HTML is inserted unchanged, TEXT is escaped. A cell's LABEL is shown beside it on a
// narrow screen; KIND is its class.
std::string code(std::string_view text);
std::string prose(std::string_view text);  // text between backquotes becomes code
std::string quiet(std::string_view text);  // "" for empty text
std::string cell(std::string_view label, std::string_view html, std::string_view kind = "");
std::string row(std::initializer_list<std::string> cells);
// A table. On a narrow screen its rows become cards. ROWS: "<tr>...</tr>".
struct Heading {
    std::string text;
    bool number = false;  // the column contains numbers
};
std::string table(const std::vector<Heading>& headings, std::string_view rows);
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

// The complete page. BODY is HTML with sections whose ids are result, trials, plan, machine and history; the
// links at the top lead to those that exist. The page loads nothing, and forbids it with a
// Content-Security-Policy.
std::string report_page(const ReportHead& head, const std::string& body);

}  // namespace wq::ctl
