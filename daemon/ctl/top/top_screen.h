// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ctl/top/top_command.h"

namespace wq::ctl {

// The terminal as `top` uses it: takes it over, and gives it back as it was.
class TopScreen {
  public:
    // Error: a terminal that cannot be used so.
    static Result<TopScreen> open(const TopOptions& options);
    TopScreen(TopScreen&& other) noexcept;
    TopScreen& operator=(TopScreen&&) = delete;
    ~TopScreen();

    void show(TopInterval interval, const std::string& limits);
    void say(const std::string& words);  // before there is an interval
    void resize();
    // Does what the keys ask for that were pressed; false: to quit.
    bool take_keys();

  private:
    explicit TopScreen(const TopOptions& options);
    void draw();
    void draw_table(const TopTable& table);
    void move_order(int by);
    bool take_key(int key);

    bool open_ = true;
    bool has_functions_;
    bool functions_;            // what is shown
    TopOrder orders_[2];        // of workqueues, of functions
    std::size_t scrolled_ = 0;  // rows above the first shown
    std::optional<TopInterval> interval_;
    std::string limits_;
};

}  // namespace wq::ctl
