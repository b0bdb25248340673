// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "state/record_writer.h"

namespace wq {

// `wq-tunectl pause` and `resume`: whether experiments are paused. They are paused while a file exists, which
// survives restarts and reboots. RECORD writes it, because its disk may not answer: the order takes effect at
// once, and an error of the file is logged later. All constructor arguments must outlive this object.
class Pause {
  public:
    Pause(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // Call it at the start. A file that cannot be examined counts as absent; the error is logged.
    void load();
    void set(bool paused);
    [[nodiscard]] bool is_set() const { return paused_; }

  private:
    std::string path_;
    RecordWriter& record_;
    Log& log_;
    bool paused_ = false;
};

}  // namespace wq
