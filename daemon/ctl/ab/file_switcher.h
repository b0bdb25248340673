// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/ab/left_store.h"
#include "ctl/ab/switcher.h"
#include "ctl/ab/value_file.h"

namespace wq::ab {

// Writes values to a file of /sys or /proc. The kernel may show a different text than was written ("Y" for
// "1", "mq-deadline [none]"), so values are compared as they are read. begin() finds out how each one is
// shown.
class FileSwitcher : public Switcher {
  public:
    // PATH: a result of resolve_value_file(). STORE must be empty, and nobody else may write to it.
    FileSwitcher(ValueFiles& files, const LeftStore& store, std::string path,
                 std::vector<std::string> values);

    // Writes the current value first, to check that it can be restored, then each value once. Errors: the
    // file does not accept a value or its own current value, or shows two values alike.
    Status begin() override;
    // Errors: an external writer changed the file (it stays as found, and nothing is restored); errno.
    Status to(std::size_t arm) override;
    Status check() override;

  private:
    Status learn(std::size_t arm);

    ValueFiles& files_;
    const LeftStore& store_;
    std::vector<std::string> values_;
    std::vector<std::optional<std::string>> shown_;  // how the file shows each value; index: arm
    std::string in_place_;                           // what the file showed after our last write
    LeftFile left_;                                  // as on disk
};

}  // namespace wq::ab
