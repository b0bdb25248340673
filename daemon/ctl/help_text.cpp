// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/help_text.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

// LINE of a help text for COLUMNS; its second column begins AT.
std::string fitted(const std::string& line, std::size_t columns, std::size_t at) {
    const bool has_second = line.size() > at && line.starts_with("  ") && line[at - 1] == ' ';
    if (line.size() <= columns || !has_second) return wrapped(line, columns);
    std::string out;
    for (const std::string& part : wrap(line.substr(at), columns - at))
        out += (out.empty() ? line.substr(0, at) : std::string(at, ' ')) + part + "\n";
    return out;
}

}  // namespace

std::string HelpText::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    const std::size_t at = get_column_width();
    const std::size_t columns = std::max(terminal_columns(), 2 * at);
    std::istringstream lines(Formatter::make_help(app, std::move(name), mode));
    std::string out;
    for (std::string line; std::getline(lines, line);) out += fitted(line, columns, at);
    return out;
}

}  // namespace wq::ctl
