// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "kernel/paths.h"

namespace wq {

// Polls for changes of CPUs that send no uevent.
class CpuWatch {
  public:
    explicit CpuWatch(const Paths& paths) : paths_(paths) {}

    // Call it once, before the other functions.
    void start();
    // Whether the machine was suspended since the last call. A suspend takes CPUs offline and online again.
    [[nodiscard]] bool was_suspended();
    // Whether the online, present, possible or isolated CPUs changed since the last call. Without udev, no
    // event reports this.
    [[nodiscard]] bool changed();

  private:
    const Paths& paths_;
    std::int64_t suspended_ = 0;  // ns suspended since boot
    std::string cpus_;            // result of cpu_state()
};

}  // namespace wq
