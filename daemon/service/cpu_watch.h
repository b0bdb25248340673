// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "kernel/paths.h"

namespace wq {

// Notices what happens to CPUs without a uevent, from look to look.
class CpuWatch {
  public:
    explicit CpuWatch(const Paths& paths) : paths_(paths) {}

    // Once, before the others.
    void start();
    // Whether the machine was suspended since the last call, which takes CPUs down and up.
    [[nodiscard]] bool was_suspended();
    // Whether other CPUs are online, present or possible than at the last call: nothing sends an event where
    // udev does not run.
    [[nodiscard]] bool changed();

  private:
    const Paths& paths_;
    std::int64_t suspended_ = 0;  // ns of this boot
    std::string cpus_;            // as cpu_state() has them
};

}  // namespace wq
