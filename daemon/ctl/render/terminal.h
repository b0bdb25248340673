// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wq::ctl {

// Columns of the terminal on stdout: COLUMNS, else what the terminal says, else 80 (no limit where stdout is
// a file).
std::size_t terminal_columns();

// Whether stdout takes colours: a terminal, and NO_COLOR is not set.
bool wants_colour();

// Whether stdout is a terminal.
bool is_terminal();

// Has those above tell what holds now, whatever stdout becomes.
void remember_terminal();

// TEXT to stderr. Nothing is done where that cannot be written: there is nobody else to tell.
void say(const std::string& text);

// A table for people. The last column is free text: it takes what room is left, is wrapped there, and moves
// to a line of its own, indented, where little is left. Columns before it that do not fit in one line take
// several.
class Table {
  public:
    explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // On a terminal, a last cell that is as the one above it is `"`, and cells of column PAINTED have the
    // colour that COLOUR_OF gives for their text ("" for none).
    void paint(std::size_t painted, std::string_view (*colour_of)(std::string_view cell));
    [[nodiscard]] std::string text(std::size_t columns, bool colour) const;

  private:
    std::optional<std::size_t> painted_;
    std::string_view (*colour_of_)(std::string_view cell) = nullptr;
    std::vector<std::vector<std::string>> rows_;
};

// A name is somebody else's text: control characters, the tab and C1 (U+0080 to U+009F) among them, and bytes
// that are not UTF-8 do not reach a terminal.
std::string printable(std::string text);

// SECONDS since 1970 as a local date and time: "2026-11-22 18:00".
std::string local_time(std::int64_t seconds);

// TEXT in lines of at most WIDTH characters, broken at spaces.
std::vector<std::string> wrap(const std::string& text, std::size_t width);

// LISTS of CPUs, two spaces apart, in lines of at most WIDTH characters. Only a list that is too long for a
// line is broken, after a comma.
std::vector<std::string> wrap_lists(const std::vector<std::string>& lists, std::size_t width);

}  // namespace wq::ctl
