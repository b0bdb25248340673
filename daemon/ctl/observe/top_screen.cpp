// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_screen.h"

#include "base/text.h"
#include "ctl/render/terminal.h"

#include <curses.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <term.h>
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
constexpr int kEscape = 27;

std::size_t page() {
    return static_cast<std::size_t>(std::max(LINES - kAround, 1));
}

void put(int line, const std::string& text, attr_t attributes = A_NORMAL) {
    if (line < 0 || line >= LINES) return;
    attrset(attributes);
    mvaddnstr(line, 0, text.c_str(), COLS);
    attrset(A_NORMAL);
}

// Whether the terminal in TERM can move the cursor. ("dumb" can be opened, but the lines then scroll.)
bool can_move() {
    int error = 0;
    if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
    const bool can = cursor_address != nullptr;
    del_curterm(cur_term);
    return can;
}

bool is_enter(int key) {
    return key == '\n' || key == '\r' || key == KEY_ENTER;
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

TopScreen::TopScreen(TopScreen&& other) noexcept
    : open_(std::exchange(other.open_, false)),
      has_functions_(other.has_functions_),
      functions_(other.functions_),
      orders_{std::move(other.orders_[0]), std::move(other.orders_[1])} {}

Result<TopScreen> TopScreen::open(const TopOptions& options) {
    if (!can_move() || newterm(nullptr, stdout, stdin) == nullptr) {
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
    return TopScreen(options);
}

TopScreen::~TopScreen() {
    if (open_) endwin();
}

void TopScreen::show(TopInterval interval, const std::string& limits) {
    history_.add(interval);
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
    selected_at_ = position_in(table);
    // Scrolls only as far as needed to show the selected row, and leaves no line empty that a row could fill.
    scrolled_ = std::clamp(scrolled_, selected_at_ - std::min(selected_at_, page() - 1), selected_at_);
    scrolled_ = std::min(scrolled_, table.rows.size() - std::min(page(), table.rows.size()));
    put(kTableAt, fmt::format("{:<{}}", table.header, COLS), A_REVERSE);
    if (table.sorted_width > 0)
        mvchgat(kTableAt, static_cast<int>(table.sorted_at), static_cast<int>(table.sorted_width),
                A_REVERSE | A_BOLD | A_UNDERLINE, 0, nullptr);
    for (std::size_t i = 0; i < page() && scrolled_ + i < table.rows.size(); i++)
        put(kTableAt + 1 + static_cast<int>(i), table.rows[scrolled_ + i],
            scrolled_ + i == selected_at_ ? A_STANDOUT : A_NORMAL);
    put(LINES - 1,
        fmt::format("q quit  ? help  Enter graph  < > sort by {}  r reverse{}", orders_[functions_].key,
                    has_functions_ ? "  f functions" : ""),
        A_DIM);
}

// The note on the `*` in the table comes first, because a narrow terminal cuts the line.
std::string TopScreen::notes() const {
    std::vector<std::string> notes;
    const bool reset = std::ranges::any_of(interval_->workqueues, &WorkqueueRow::was_reset);
    if (reset && !functions_ && view_ == View::table) notes.emplace_back(kResetNote);
    if (interval_->lost > 0) notes.push_back(fmt::format("not timed: {}", plural(interval_->lost, "item")));
    if (!limits_.empty()) notes.push_back(limits_);
    return fmt::format("{}", fmt::join(notes, "  "));
}

TopTable TopScreen::table() const {
    const auto width = static_cast<std::size_t>(COLS);
    const TopOrder& order = orders_[functions_];
    return functions_ ? lay_out(interval_->functions, order, width)
                      : lay_out(interval_->workqueues, order, width);
}

void TopScreen::draw_graph() {
    put(0, graph_title_, A_BOLD);
    put(1, notes());
    const auto lines = graph_lines(history_.of(*selected_), functions_, static_cast<std::size_t>(COLS),
                                   static_cast<std::size_t>(std::max(LINES - 3, 1)));
    for (std::size_t i = 0; i < lines.size(); i++) put(kTableAt + static_cast<int>(i), lines[i]);
    put(LINES - 1, "q Esc back  ? help", A_DIM);
}

void TopScreen::draw_help() {
    const auto lines = help_lines();
    for (std::size_t i = 0; i < lines.size(); i++) put(static_cast<int>(i), lines[i]);
    put(LINES - 1, "any key: back", A_DIM);
}

void TopScreen::draw() {
    if (!interval_) return;
    erase();
    if (view_ == View::help) {
        draw_help();
    } else if (view_ == View::graph) {
        draw_graph();
    } else {
        put(0, summary(*interval_), A_BOLD);
        put(1, notes());
        draw_table(table());
    }
    refresh();
}

void TopScreen::move_order(int by) {
    const auto keys = sort_keys(functions_);
    const auto at = std::ranges::find(keys, orders_[functions_].key) - keys.begin();
    const auto count = static_cast<int>(keys.size());
    orders_[functions_].key = keys[static_cast<std::size_t>((static_cast<int>(at) + by + count) % count)];
}

// The position of the selected row. If that row is gone, the row that has its position now.
std::size_t TopScreen::position_in(const TopTable& table) const {
    if (!selected_ || table.keys.empty()) return 0;
    const auto at = std::ranges::find(table.keys, *selected_);
    if (at != table.keys.end()) return static_cast<std::size_t>(at - table.keys.begin());
    return std::min(selected_at_, table.keys.size() - 1);
}

// Moves the selection by BY rows. It then stays on its row, even if the row moves.
void TopScreen::select(long by) {
    const TopTable now = table();
    if (now.keys.empty()) return;
    const auto last = static_cast<long>(now.keys.size()) - 1;
    const long at = std::clamp(static_cast<long>(position_in(now)) + by, 0L, last);
    selected_at_ = static_cast<std::size_t>(at);
    selected_ = now.keys[selected_at_];
}

void TopScreen::open_graph() {
    if (table().keys.empty()) return;
    select(0);
    view_ = View::graph;
    for (const auto& row : interval_->workqueues)
        if (key_of(row) == *selected_) graph_title_ = printable(row.now.name);
    for (const auto& row : interval_->functions)
        if (key_of(row) == *selected_)
            graph_title_ = fmt::format("{} of {}", printable(row.function), printable(row.workqueue));
}

bool TopScreen::take_key(int key) {
    if (key == KEY_RESIZE) return true;
    if (!interval_) return key != 'q';
    if (view_ == View::help) {
        view_ = before_help_;
        return true;
    }
    if (key == '?') {
        before_help_ = std::exchange(view_, View::help);
        return true;
    }
    if (view_ == View::table) return take_key_of_table(key);
    if (key == 'q' || key == kEscape || is_enter(key)) view_ = View::table;
    return true;
}

bool TopScreen::take_key_of_table(int key) {
    const auto rows = static_cast<long>(page());
    if (is_enter(key)) open_graph();
    if (key == '<') move_order(-1);
    if (key == '>') move_order(1);
    if (key == 'r') orders_[functions_].reverse = !orders_[functions_].reverse;
    const bool switches = key == 'f' && has_functions_;
    if (switches) functions_ = !functions_;
    if (switches || key == KEY_HOME) selected_.reset();
    for (const auto& [name, by] : {std::pair<int, long>{KEY_UP, -1},
                                   {KEY_DOWN, 1},
                                   {KEY_PPAGE, -rows},
                                   {KEY_NPAGE, rows},
                                   {KEY_END, std::numeric_limits<int>::max()}})
        if (key == name) select(by);
    return key != 'q';
}

bool TopScreen::take_keys() {
    for (int key = getch(); key != ERR; key = getch())
        if (!take_key(key)) return false;
    draw();
    return true;
}

}  // namespace wq::ctl
