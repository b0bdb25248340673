// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

namespace wq {

// A kworker at one moment.
struct Kworker {
    int pid = 0;
    std::string name;   // "kworker/u96:3", "kworker/R-kcryptd-254:0"
    std::string work;   // the kernel's name for its work, usually a workqueue: "kcryptd-254:0-1"; may be ""
    bool busy = false;  // true: it does `work` now; false: it did `work` last
    char state = '?';   // as in /proc/PID/stat: R: running, D: blocked inside an item, I: idle
    std::uint64_t cpu_ns = 0;  // CPU time since its start
    std::uint64_t runs = 0;    // how often it was scheduled on a CPU
};

}  // namespace wq
