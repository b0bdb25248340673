// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ctl/top/top_command.h"

namespace wq::ctl {

// The terminal for `top`. The destructor restores it.
class TopScreen {
  public:
    // Error: the terminal cannot be used for a screen.
    static Result<TopScreen> open(const TopOptions& options);
    TopScreen(TopScreen&& other) noexcept;
    TopScreen& operator=(TopScreen&&) = delete;
    ~TopScreen();

    void show(TopInterval interval, const std::string& limits);
    void say(const std::string& words);  // before the first interval
    void resize();
    // Handles the pressed keys. False: quit.
    bool take_keys();

  private:
    explicit TopScreen(const TopOptions& options);
    void draw();
    void draw_table(const TopTable& table);
    void move_order(int by);
    bool take_key(int key);

    bool open_ = true;
    bool has_functions_;
    bool functions_;            // shows functions instead of workqueues
    TopOrder orders_[2];        // order of workqueues, of functions
    std::size_t scrolled_ = 0;  // rows above the first visible one
    std::optional<TopInterval> interval_;
    std::string limits_;
};

}  // namespace wq::ctl
