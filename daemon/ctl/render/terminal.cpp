// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>

#include "base/text.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kUnlimited = 100'000;
constexpr std::size_t kLeastText = 24;        // columns; below this, free text gets a line of its own
constexpr std::string_view kNextLine = "  ";  // starts the further lines of a row
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

struct Terminal {
    bool is_there = false;
    std::size_t columns = kUnlimited;
};
std::optional<Terminal> remembered;

Terminal look_at_terminal() {
    if (remembered) return *remembered;
    if (::isatty(STDOUT_FILENO) == 0) return {};
    winsize size{};
    return {true, ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                                    : std::size_t{80}};
}

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    return widths;
}

// The columns that start a new line. More than the first one if those before the last do not fit in one
// line.
std::set<std::size_t> line_starts(const std::vector<std::size_t>& widths, std::size_t columns) {
    std::set<std::size_t> starts{0};
    std::size_t used = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); i++) {
        if (i > 0 && used + widths[i] > columns) {
            starts.insert(i);
            used = kNextLine.size();
        }
        used += widths[i] + 2;
    }
    return starts;
}

// The pager as a shell command; "" for none.
std::string pager_command() {
    for (const char* name : {"SYSTEMD_PAGER", "PAGER"})
        if (const char* value = ::getenv(name); value != nullptr)
            return std::string(value) == "cat" ? "" : value;
    return "command -v less >/dev/null && exec less; exec cat";
}

// A script that runs PAGER, or `cat` if the shell cannot run PAGER, so that the output is not lost. SIGINT is
// for the pager; the shell survives it and waits until the pager ends.
std::string or_cat(const std::string& pager) {
    return "trap : INT\n" + pager + "\ncase $? in 126|127) exec cat;; esac";
}

void become(const std::string& command, int end) {
    ::dup2(end, STDIN_FILENO);
    // Like systemd's tools: exit if the output fits, keep colours, do not chop lines; root cannot run
    // commands from the pager.
    ::setenv("LESS", "FRXMK", 0);
    if (::geteuid() == 0) ::setenv("LESSSECURE", "1", 0);
    ::execl("/bin/sh", "sh", "-c", or_cat(command).c_str(), nullptr);
    ::_exit(127);
}

}  // namespace

std::size_t terminal_columns() {
    if (const char* text = ::getenv("COLUMNS"); text != nullptr)
        if (const auto value = number_of<unsigned>(text); value && *value > 0) return *value;
    return look_at_terminal().columns;
}

bool is_terminal() {
    return look_at_terminal().is_there;
}

void say(const std::string& text) {
    std::fputs(text.c_str(), stderr);
}

bool terminal_is_dumb() {
    const char* term = ::getenv("TERM");
    const std::string_view name = term == nullptr ? "" : term;
    return name.empty() || name == "dumb" || name == "unknown";
}

bool wants_colour() {
    const char* no = ::getenv("NO_COLOR");
    return look_at_terminal().is_there && !terminal_is_dumb() && (no == nullptr || *no == '\0');
}

std::string local_time(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm local{};
    char out[32] = "";
    if (::localtime_r(&time, &local) != nullptr) std::strftime(out, sizeof out, "%Y-%m-%d %H:%M", &local);
    return out;
}

std::string printable(std::string text) {
    std::replace(text.begin(), text.end(), '\t', '?');
    return wq::printable(text);
}

std::vector<std::string> wrap(const std::string& text, std::size_t width) {
    std::vector<std::string> lines;
    std::string rest = text;
    while (rest.size() > width) {
        auto cut = rest.rfind(' ', width);
        if (cut == std::string::npos || cut == 0) {
            const auto comma = width > 0 ? rest.rfind(',', width - 1) : std::string::npos;
            if (comma != std::string::npos) {
                lines.push_back(rest.substr(0, comma + 1));
                rest = rest.substr(comma + 1);
                continue;
            }
            cut = rest.find(' ');
        }
        if (cut == std::string::npos) break;
        lines.push_back(rest.substr(0, rest.find_last_not_of(' ', cut) + 1));
        rest.erase(0, rest.find_first_not_of(' ', cut));
    }
    lines.push_back(rest);
    return lines;
}

std::string wrapped(const std::string& text, std::size_t width) {
    std::string out;
    for (const std::string& line : wrap(text, width)) out += line + "\n";
    return out;
}

void print_text(const std::string& text, std::size_t indent) {
    for (const std::string& line : wrap(text, std::max<std::size_t>(terminal_columns(), 20) - indent))
        fmt::print("{:{}}{}\n", "", indent, line);
}

void Table::group_names() {
    constexpr std::size_t kMost = 24;
    if (rows_.size() <= kMost + 1) return;
    std::vector<std::vector<std::string>> kept{rows_.front()};
    std::vector<std::size_t> more(1);
    std::map<std::vector<std::string>, std::size_t> place_of;  // of the other cells in KEPT
    for (auto row = rows_.begin() + 1; row != rows_.end(); ++row) {
        const auto [place, is_new] = place_of.try_emplace({row->begin() + 1, row->end()}, kept.size());
        if (is_new) {
            kept.push_back(*row);
            more.push_back(0);
        } else {
            more[place->second]++;
        }
    }
    for (std::size_t i = 1; i < kept.size(); i++)
        if (more[i] > 0) kept[i].front() += fmt::format(" and {} more", more[i]);
    rows_ = std::move(kept);
}

std::string Table::text(std::size_t columns, bool colour) const {
    const auto widths = widths_of(rows_);
    std::size_t indent = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); i++) indent += widths[i] + 2;
    const bool below = indent + kLeastText > columns && indent + widths.back() > columns;
    const std::size_t at = below ? 4 : indent;
    const std::size_t room = columns > at + 8 ? columns - at : 8;
    const auto starts = line_starts(widths, columns);
    std::string out;
    for (std::size_t r = 0; r < rows_.size(); r++) {
        std::string line;
        const auto end_line = [&] {
            line.erase(line.find_last_not_of(' ') + 1);
            out += r == 0 && colour ? fmt::format("{}{}{}\n", kBold, line, kPlain) : line + "\n";
            line = kNextLine;
        };
        for (std::size_t i = 0; i + 1 < widths.size(); i++) {
            if (i > 0 && starts.contains(i)) end_line();
            const std::string cell = fmt::format("{:<{}}  ", printable(rows_[r][i]), widths[i]);
            const bool painted = colour && r > 0 && painted_ == i;
            const std::string_view paint = painted ? colour_of_(rows_[r][i]) : "";
            line += paint.empty() ? cell : fmt::format("{}{}{}", paint, cell, kPlain);
        }
        const bool same =
            is_terminal() && r > 1 && !rows_[r].back().empty() && rows_[r].back() == rows_[r - 1].back();
        auto lines = wrap(same ? "\"" : printable(rows_[r].back()), room);
        if (!below) line += lines.front();
        end_line();
        for (std::size_t i = below ? 0 : 1; i < lines.size(); i++)
            if (!lines[i].empty()) out += fmt::format("{:{}}{}\n", "", at, lines[i]);
    }
    return out;
}

Pager::Pager(bool wanted) {
    const std::string command =
        wanted && ::isatty(STDOUT_FILENO) == 1 && !terminal_is_dumb() ? pager_command() : "";
    int ends[2];
    if (command.empty()) return;
    remembered = look_at_terminal();
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) become(command, ends[0]);
    if (pid_ > 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        (void)::signal(SIGPIPE, SIG_DFL);  // the user may quit the pager before the end of the output
    }
    ::close(ends[0]);
    ::close(ends[1]);
}

Pager::~Pager() {
    if (pid_ <= 0) return;
    (void)std::fflush(stdout);
    ::close(STDOUT_FILENO);
    (void)::signal(SIGINT, SIG_IGN);  // SIGINT is for the pager
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace wq::ctl
