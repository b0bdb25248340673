// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ctl/observe/top_rates.h"
#include "ctl/observe/top_table.h"

namespace wq::ctl {

// The terminal for `top`. The destructor restores it.
class TopScreen {
  public:
    // Error: the terminal cannot be used for a screen.
    static Result<TopScreen> open(const TopOptions& options);
    TopScreen(TopScreen&& other) noexcept;
    TopScreen& operator=(TopScreen&&) = delete;
    ~TopScreen();

    // Shows the next interval with the note LIMITS.
    void show(TopInterval interval, const std::string& limits);
    void note(const std::string& limits);  // replaces the note of the current interval
    void say(const std::string& words);    // shows WORDS before the first interval
    void resize();
    // Handles the pressed keys. False: quit.
    bool take_keys();

  private:
    explicit TopScreen(const TopOptions& options);
    enum class View { table, graph, help };

    void draw();
    void draw_table(const TopTable& table);
    void draw_graph();
    void draw_help();
    [[nodiscard]] std::string notes() const;
    [[nodiscard]] TopTable table() const;
    void move_order(int by);
    [[nodiscard]] std::size_t position_in(const TopTable& table) const;
    void select(long by);
    void open_graph();
    bool take_key(int key);
    bool take_key_of_table(int key);

    bool open_ = true;
    bool has_functions_;
    bool functions_;      // shows functions instead of workqueues
    TopOrder orders_[2];  // order of workqueues, of functions
    View view_ = View::table;
    View before_help_ = View::table;
    std::size_t scrolled_ = 0;        // rows above the first visible one
    std::size_t selected_at_ = 0;     // the selected row as last drawn
    std::optional<RowKey> selected_;  // empty: always the first row
    std::string graph_title_;
    std::optional<TopInterval> interval_;
    TopHistory history_;
    std::string limits_;
};

}  // namespace wq::ctl
