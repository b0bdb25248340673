// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/top/top_screen.h"

#include <curses.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

// Undefine these macros of curses.h.
#undef lines
#undef columns

namespace wq::ctl {
namespace {

constexpr int kTableAt = 2;  // line of the header, below the summary and the notes
constexpr int kAround = 4;   // lines that are not rows

std::size_t page() {
    return static_cast<std::size_t>(std::max(LINES - kAround, 1));
}

void put(int line, const std::string& text, attr_t attributes = A_NORMAL) {
    if (line < 0 || line >= LINES) return;
    attrset(attributes);
    mvaddnstr(line, 0, text.c_str(), COLS);
    attrset(A_NORMAL);
}

// If the terminal accepts no more data, curses stays in write(2) for any signal. While this object exists, a
// pending signal to quit ends the process after one or two seconds and restores the terminal's settings.
class Drawing {
  public:
    Drawing() {
        struct sigaction action {};
        action.sa_handler = [](int) { quit_if_asked(); };
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGALRM, &action, &before_);
        every(1);
    }
    ~Drawing() {
        every(0);
        ::sigaction(SIGALRM, &before_, nullptr);
    }
    Drawing(const Drawing&) = delete;
    Drawing& operator=(const Drawing&) = delete;

    // Saves the terminal's settings.
    static bool begin() { return ::tcgetattr(STDIN_FILENO, &settings_) == 0; }

  private:
    static void every(time_t seconds) {
        const itimerval timer{{seconds, 0}, {seconds, 0}};
        ::setitimer(ITIMER_REAL, &timer, nullptr);
    }
    // Runs in a signal handler.
    static void quit_if_asked() {
        sigset_t pending;
        ::sigpending(&pending);
        for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
            if (::sigismember(&pending, one) != 1) continue;
            ::tcsetattr(STDIN_FILENO, TCSANOW, &settings_);
            ::_exit(0);
        }
    }

    static inline termios settings_{};
    struct sigaction before_ {};
};

// Whether the terminal in TERM can move the cursor. ("dumb" can be opened, but the lines then scroll.)
bool can_move() {
    int error = 0;
    if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
    const bool can = cursor_address != nullptr;
    del_curterm(cur_term);
    return can;
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
    if (!Drawing::begin()) return fail_errno("this terminal's settings", errno);
    const Drawing drawing;
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
    curs_set(0);
    return TopScreen(options);
}

TopScreen::~TopScreen() {
    if (!open_) return;
    const Drawing drawing;
    endwin();
}

void TopScreen::show(TopInterval interval, const std::string& limits) {
    interval_ = std::move(interval);
    limits_ = limits;
    draw();
}

void TopScreen::say(const std::string& words) {
    const Drawing drawing;
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
    const std::size_t last = table.rows.size() - std::min(page(), table.rows.size());
    scrolled_ = std::min(scrolled_, last);
    put(kTableAt,
        table.header +
            std::string(static_cast<std::size_t>(COLS) -
                            std::min<std::size_t>(table.header.size(), static_cast<std::size_t>(COLS)),
                        ' '),
        A_REVERSE);
    if (table.sorted_width > 0)
        mvchgat(kTableAt, static_cast<int>(table.sorted_at), static_cast<int>(table.sorted_width),
                A_REVERSE | A_BOLD | A_UNDERLINE, 0, nullptr);
    for (std::size_t i = 0; i < page() && scrolled_ + i < table.rows.size(); i++)
        put(kTableAt + 1 + static_cast<int>(i), table.rows[scrolled_ + i]);
}

void TopScreen::draw() {
    if (!interval_) return;
    const Drawing drawing;
    erase();
    put(0, summary(*interval_), A_BOLD);
    std::vector<std::string> notes;  // the first note explains what is visible
    const bool reset = std::ranges::any_of(interval_->workqueues, &WorkqueueRow::was_reset);
    if (reset && !functions_) notes.emplace_back(kResetNote);
    if (interval_->lost > 0) notes.push_back(fmt::format("{} items were not timed", interval_->lost));
    if (!limits_.empty()) notes.push_back(limits_);
    put(1, fmt::format("{}", fmt::join(notes, "  ")));
    const auto width = static_cast<std::size_t>(COLS);
    const TopOrder& order = orders_[functions_];
    draw_table(functions_ ? lay_out(interval_->functions, order, width)
                          : lay_out(interval_->workqueues, order, width));
    put(LINES - 1,
        fmt::format("q quit  < > sort by {}  r reverse{}  arrows scroll", order.key,
                    has_functions_ ? "  f functions" : ""),
        A_DIM);
    refresh();
}

void TopScreen::move_order(int by) {
    const auto keys = sort_keys(functions_);
    const auto at = std::ranges::find(keys, orders_[functions_].key) - keys.begin();
    const auto count = static_cast<int>(keys.size());
    orders_[functions_].key = keys[static_cast<std::size_t>((static_cast<int>(at) + by + count) % count)];
}

bool TopScreen::take_key(int key) {
    const std::size_t rows = page();
    switch (key) {
        case 'q':
            return false;
        case '<':
            move_order(-1);
            break;
        case '>':
            move_order(1);
            break;
        case 'r':
            orders_[functions_].reverse = !orders_[functions_].reverse;
            break;
        case 'f':
            if (has_functions_) functions_ = !functions_;
            scrolled_ = 0;
            break;
        case KEY_UP:
            scrolled_ -= std::min<std::size_t>(scrolled_, 1);
            break;
        case KEY_DOWN:
            scrolled_++;
            break;
        case KEY_PPAGE:
            scrolled_ -= std::min(scrolled_, rows);
            break;
        case KEY_NPAGE:
            scrolled_ += rows;
            break;
        case KEY_HOME:
            scrolled_ = 0;
            break;
        case KEY_END:
            scrolled_ = SIZE_MAX - 1;
            break;
        default:
            break;
    }
    return true;
}

bool TopScreen::take_keys() {
    for (int key = getch(); key != ERR; key = getch())
        if (!take_key(key)) return false;
    draw();
    return true;
}

}  // namespace wq::ctl
