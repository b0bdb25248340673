// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/journal.h"
#include "ctl/machine.h"

namespace wq::ctl {

// A log that prints its lines as complaints of this command.
class Complaints : public Log {
  public:
    // Lines of a higher number than LEAST (lower importance) are dropped.
    explicit Complaints(int least) : least_(least) {}
    void write(const LogLine& line) override {
        if (line.priority <= least_) complain(line.text);
    }

  private:
    int least_;
};

}  // namespace wq::ctl
