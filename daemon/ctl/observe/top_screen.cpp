// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_command.h"

#include "base/text.h"
#include "ctl/render/terminal.h"

#include <curses.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

// Undefine these macros of curses.h.
#undef lines
#undef columns

namespace wq::ctl {
namespace {

constexpr int kTableAt = 2;       // line of the header, below the summary and the notes
constexpr int kAround = 4;        // lines that are not rows
constexpr int kEscapeDelay = 25;  // ms to wait for the rest of a key's escape sequence

std::size_t page() {
    return static_cast<std::size_t>(std::max(LINES - kAround, 1));
}

void put(int line, const std::string& text, attr_t attributes = A_NORMAL) {
    if (line < 0 || line >= LINES) return;
    attrset(attributes);
    mvaddnstr(line, 0, text.c_str(), COLS);
    attrset(A_NORMAL);
}

// Ctrl-S would stop the output and block us.
void ignore_stop_key() {
    termios now{};
    if (::tcgetattr(STDIN_FILENO, &now) != 0) return;
    now.c_iflag &= ~static_cast<tcflag_t>(IXON);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    def_prog_mode();
}

}  // namespace

TopScreen::TopScreen(const TopOptions& options)
    : has_functions_(options.functions), functions_(options.functions), orders_{{"rate"}, {"busy"}} {
    if (!options.order.key.empty()) orders_[functions_] = options.order;
}

Result<std::unique_ptr<TopScreen>> TopScreen::open(const TopOptions& options) {
    if (newterm(nullptr, stdout, stdin) == nullptr) {
        const char* name = ::getenv("TERM");
        return fail(fmt::format("this terminal cannot be used (TERM={}); --once prints a table",
                                name != nullptr ? name : ""));
    }
    cbreak();
    noecho();
    ignore_stop_key();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    set_escdelay(kEscapeDelay);
    curs_set(0);
    return std::unique_ptr<TopScreen>(new TopScreen(options));
}

TopScreen::~TopScreen() {
    endwin();
}

void TopScreen::show(TopInterval interval, const std::string& limits) {
    interval_ = std::move(interval);
    note(limits);
}

void TopScreen::note(const std::string& limits) {
    limits_ = limits;
    draw();
}

void TopScreen::say(const std::string& words) {
    erase();
    put(0, words);
    refresh();
}

void TopScreen::resize() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    clear();
    draw();
}

void TopScreen::draw_table(const TopTable& table) {
    // Leaves no line empty that a row could fill.
    scrolled_ = std::min(scrolled_, table.rows.size() - std::min(page(), table.rows.size()));
    put(kTableAt, fmt::format("{:<{}}", table.header, COLS), A_REVERSE);
    for (std::size_t i = 0; i < page() && scrolled_ + i < table.rows.size(); i++)
        put(kTableAt + 1 + static_cast<int>(i), table.rows[scrolled_ + i]);
    put(LINES - 1,
        fmt::format("q quit  ? help  < > sort by {}  r reverse{}", orders_[functions_].key,
                    has_functions_ ? "  f functions" : ""),
        A_DIM);
}

void TopScreen::draw() {
    if (!interval_) return;
    erase();
    if (help_) {
        const auto lines = help_lines();
        for (std::size_t i = 0; i < lines.size(); i++) put(static_cast<int>(i), lines[i]);
        put(LINES - 1, "any key: back", A_DIM);
    } else {
        put(0, summary(*interval_), A_BOLD);
        std::vector<std::string> notes;
        if (interval_->lost > 0)
            notes.push_back(fmt::format("not timed: {}", plural(interval_->lost, "item")));
        if (!limits_.empty()) notes.push_back(limits_);
        put(1, fmt::format("{}", fmt::join(notes, "  ")));
        const auto width = static_cast<std::size_t>(COLS);
        const TopOrder& order = orders_[functions_];
        draw_table(functions_ ? lay_out(interval_->functions, order, width)
                              : lay_out(interval_->workqueues, order, width));
    }
    refresh();
}

void TopScreen::move_order(int by) {
    const auto keys = sort_keys(functions_);
    const auto at = std::ranges::find(keys, orders_[functions_].key) - keys.begin();
    const auto count = static_cast<int>(keys.size());
    orders_[functions_].key = keys[static_cast<std::size_t>((static_cast<int>(at) + by + count) % count)];
}

void TopScreen::move_rows(int key) {
    const auto rows = static_cast<long>(page());
    for (const auto& [name, by] : {std::pair<int, long>{KEY_UP, -1},
                                   {KEY_DOWN, 1},
                                   {KEY_PPAGE, -rows},
                                   {KEY_NPAGE, rows},
                                   {KEY_HOME, std::numeric_limits<int>::min()},
                                   {KEY_END, std::numeric_limits<int>::max()}})
        if (key == name)
            scrolled_ = static_cast<std::size_t>(std::max(static_cast<long>(scrolled_) + by, 0L));
}

bool TopScreen::take_key(int key) {
    if (key == KEY_RESIZE) return true;
    if (!interval_) return key != 'q';
    if (std::exchange(help_, !help_ && key == '?')) return true;
    if (key == '<') move_order(-1);
    if (key == '>') move_order(1);
    if (key == 'r') orders_[functions_].reverse = !orders_[functions_].reverse;
    if (key == 'f' && has_functions_) functions_ = !functions_;
    move_rows(key);
    return key != 'q';
}

bool TopScreen::take_keys() {
    for (int key = getch(); key != ERR; key = getch())
        if (!take_key(key)) return false;
    draw();
    return true;
}

}  // namespace wq::ctl
