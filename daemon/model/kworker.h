// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

namespace wq {

// A kworker at one moment.
struct Kworker {
    int pid = 0;
    std::string name;   // "kworker/u96:3", "kworker/R-kcryptd-254:0"
    std::string work;   // what the kernel calls its work, usually the workqueue: "kcryptd-254:0-1"; may be ""
    bool busy = false;  // it has that work now; otherwise it had it last
    char state = '?';   // as in /proc/PID/stat: R runs, D waits in the middle of an item, I is idle
    std::uint64_t cpu_ns = 0;  // CPU time since its start
    std::uint64_t runs = 0;    // how often it was put on a CPU
};

}  // namespace wq
