// SPDX-License-Identifier: LGPL-2.1-or-later
//
// toml11 3.7 keeps a wrong place in its syntax errors and 4.x none at all, but both print the right one:
//
//     [error] toml::insert_value: value ("a") already exists.
//      --> policy
//       |
//     1 | a=1
//       |   ^--- value already exists here
//      ...
//     3 | a = 3
//       |     ^--- value defined twice
//
// So it is read from there: of the lines shown under the first [error], the last one in the file, since what
// was there before was right until then. 3.7 shows the date or time of a date with a time as if it were all
// of line 1: what is shown, and is not what that line says, is looked for. What cannot be read that way is an
// error of the whole file.
#include "policy/syntax_error.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace wq {
namespace {

struct Mark {
    Place place;
    std::string_view note;   // "value defined twice"
    std::string_view shown;  // the line
};

constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text, std::string_view of) {
    const auto first = text.find_first_not_of(of);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(of) - first + 1);
}

std::string_view next_line(std::string_view& rest) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
}

struct Shown {
    unsigned number;
    std::string_view text;
};

// " 12 | text"
std::optional<Shown> shown_line(std::string_view line) {
    const auto bar = line.find(" |");
    if (bar == std::string_view::npos) return std::nullopt;
    const auto number = trim(line.substr(0, bar), " ");
    unsigned value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value == 0) return std::nullopt;
    return Shown{value, trim(line.substr(bar + 2), kBlanks)};
}

// "    |   ^--- note" below a line that is SHOWN.
std::optional<Mark> mark_of(std::string_view line, const Shown& shown) {
    const auto bar = line.find('|');
    if (bar == std::string_view::npos || !trim(line.substr(0, bar), " ").empty()) return std::nullopt;
    const auto caret = line.find_first_not_of(' ', bar + 1);
    // 4.x: no caret, but "--", under what is beyond the file's end.
    if (caret == std::string_view::npos || caret < bar + 2 ||
        std::string_view("^~-").find(line[caret]) == std::string_view::npos)
        return std::nullopt;
    return Mark{{shown.number, static_cast<unsigned>(caret - bar - 1)},
                trim(line.substr(caret), "^~- ."),
                shown.text};
}

// MARK, where its text stands in TEXT; 4.x marks more than is there at a file's end.
Mark found_in(const SourceText& text, Mark mark) {
    const bool elsewhere = !mark.shown.empty() && trim(text.line(mark.place.line), kBlanks) != mark.shown;
    const auto offset = elsewhere ? text.text().find(mark.shown) : std::string::npos;
    if (offset != std::string::npos) mark.place = text.place_of(offset + mark.place.column - 1);
    const auto end = static_cast<unsigned>(text.line(mark.place.line).size() + 1);
    mark.place.column = std::min(mark.place.column, end);
    return mark;
}

std::optional<Mark> last_mark(const SourceText& text, std::string_view report) {
    std::optional<Mark> last;
    Shown shown{};
    while (!report.empty()) {
        const auto line = next_line(report);
        if (line.starts_with("[error]")) break;
        if (const auto next = shown_line(line)) {
            shown = *next;
        } else if (const auto mark = mark_of(line, shown); mark && shown.number >= 1 &&
                                                           shown.number <= text.lines() &&
                                                           (!last || shown.number >= last->place.line)) {
            last = mark;
        }
    }
    if (last) last = found_in(text, *last);
    return last;
}

// "[error] toml::parse_table: invalid line format" -> "invalid line format"; "" where nothing else is said.
std::string_view title_of(std::string_view line) {
    if (line.starts_with("[error] ")) line.remove_prefix(8);
    const auto word = line.substr(0, line.find(' '));
    if (word.find("::") != std::string_view::npos || word.starts_with("parse_"))
        line.remove_prefix(word.size());
    return trim(line, " .");
}

}  // namespace

PolicyError read_syntax_error(const SourceText& text, std::string_view report) {
    const auto title = title_of(next_line(report));
    const auto mark = last_mark(text, report);
    std::string message = "syntax error";
    if (!title.empty()) message.append(": ").append(title);
    if (mark && !mark->note.empty() && mark->note != "here") message.append(": ").append(mark->note);
    return text.error(mark ? mark->place : Place{}, printable(message));
}

}  // namespace wq
