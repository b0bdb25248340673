// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wq::ctl {

// TEXT for an HTML element or a quoted attribute, whoever wrote it: what has a meaning there is escaped,
// control characters and bytes that are not UTF-8 become '?'.
std::string escape(std::string_view text);

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

// The page. BODY is HTML: sections with the ids machine, plan, trials and history. It loads nothing, and says
// so to the browser.
std::string report_page(const ReportHead& head, const std::string& body);

// The page's style sheet.
extern const char* const kReportStyle;

}  // namespace wq::ctl
