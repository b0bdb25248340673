// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
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
    static Result<std::unique_ptr<TopScreen>> open(const TopOptions& options);
    TopScreen(const TopScreen&) = delete;
    TopScreen& operator=(const TopScreen&) = delete;
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
    void draw();
    void draw_table(const TopTable& table);
    [[nodiscard]] std::string notes() const;
    [[nodiscard]] TopTable table() const;
    void move_order(int by);
    void move_rows(int key);
    bool take_key(int key);

    bool has_functions_;
    bool functions_;            // shows functions instead of workqueues
    bool help_ = false;         // shows the help
    TopOrder orders_[2];        // order of workqueues, of functions
    std::size_t scrolled_ = 0;  // rows above the first visible one
    std::optional<TopInterval> interval_;
    std::string limits_;
};

}  // namespace wq::ctl
