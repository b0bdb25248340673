// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wq::ctl {

// Columns of the terminal on stdout: COLUMNS, else the terminal's width, else 80 (no limit if stdout is a
// file).
std::size_t terminal_columns();

// Whether TERM is unset or names a terminal that understands no control sequences.
bool terminal_is_dumb();

// Whether to use colours on stdout: it is a terminal, not a dumb one, and NO_COLOR is not set.
bool wants_colour();

// Whether stdout is a terminal.
bool is_terminal();

// Prints TEXT to stderr. Ignores write errors, because there is no other place to report them.
void say(const std::string& text);

// A table for display. The last column is free text: it uses the remaining width and is wrapped. If little
// width remains, it moves to its own indented line. If the other columns do not fit in one line, they use
// several.
class Table {
  public:
    explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // From 25 rows on, rows that differ only in the first cell share one: "NAME and 3 more".
    void group_names();
    // Cells of column PAINTED get the colour that COLOUR_OF returns for their text ("" for none), if text()
    // uses colour. On a terminal, text() shows a last cell that equals the one above as `"`.
    void paint(std::size_t painted, std::string_view (*colour_of)(std::string_view cell)) {
        painted_ = painted;
        colour_of_ = colour_of;
    }
    [[nodiscard]] std::string text(std::size_t columns, bool colour) const;
    [[nodiscard]] std::string text() const { return text(terminal_columns(), wants_colour()); }
    [[nodiscard]] std::string html() const;  // a cell with a colour has its text as class

  private:
    std::optional<std::size_t> painted_;
    std::string_view (*colour_of_)(std::string_view cell) = nullptr;
    std::vector<std::vector<std::string>> rows_;
};

// TEXT with '?' for everything that must not reach a terminal: control characters, including tab and C1
// (U+0080 to U+009F), and bytes that are not UTF-8. Names come from other programs and may contain these.
std::string printable(std::string text);

// SECONDS since 1970 as local date and time: "2026-11-22 18:00".
std::string local_time(std::int64_t seconds);

// Wraps TEXT into lines of at most WIDTH characters: at spaces, and after a comma of a longer word, such as a
// list of CPUs. A longer word without a comma makes its line longer than WIDTH.
std::vector<std::string> wrap(const std::string& text, std::size_t width);
// Returns the lines of wrap() as one text, each with a "\n".
std::string wrapped(const std::string& text, std::size_t width = terminal_columns());
// Prints TEXT to stdout, indented by INDENT and wrapped for the terminal, for which at least 20 columns are
// assumed.
void print_text(const std::string& text, std::size_t indent = 0);

// TEXT in single quotes, which a POSIX shell takes literally.
inline std::string shell_quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

// TEXT as one word of a command to copy: unquoted if no character is special to a shell, else quoted.
inline std::string shell_word(const std::string& text) {
    const bool plain = !text.empty() && text.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyz"
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-.:@%+=,/") == std::string::npos;
    return plain ? text : shell_quoted(text);
}

// While this object exists, stdout goes through a pager, like in systemctl: $SYSTEMD_PAGER, else $PAGER,
// else `less`, which exits at once if the output fits. None if stdout is not a terminal or is a dumb one, if
// none is wanted, or if the variable is "" or "cat".
class Pager {
  public:
    explicit Pager(bool wanted);
    ~Pager();
    Pager(const Pager&) = delete;
    Pager& operator=(const Pager&) = delete;

  private:
    pid_t pid_ = -1;
};

// Progress on stderr: one line per change. On a terminal that is not dumb, it rewrites one line and disables
// wrapping, because it could not erase the rows above the cursor.
class ProgressLine {
  public:
    void show(const std::string& text) {
        if (text == shown_) return;
        say(terminal_ ? "\r\033[K\033[?7l" + text + "\033[?7h" : text + "\n");
        std::fflush(stderr);
        shown_ = text;
    }
    void end() const {
        if (terminal_ && !shown_.empty()) say("\n");
    }

  private:
    bool terminal_ = ::isatty(STDERR_FILENO) == 1 && !terminal_is_dumb();
    std::string shown_;
};

}  // namespace wq::ctl
