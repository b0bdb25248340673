// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "base/record_writer.h"

namespace wq {

// `wq-tunectl pause` and `resume`: whether experiments are paused. A file says so, which lasts through
// restarts and reboots. Its disk may not answer, so it is written by RECORD: the order holds at once, and the
// journal says if it could not be recorded. All constructor arguments must outlive this object.
class Pause {
  public:
    Pause(std::string path, RecordWriter& record, Log& log)
        : path_(std::move(path)), record_(record), log_(log) {}

    // At the start. A file that cannot be looked at counts as none, and is logged.
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
