// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fstream>
#include <set>
#include <string>

namespace wq::test {

// Returns the sum, in kB, of the fields WORDS in /proc/PID/status. PID may be "self".
inline unsigned long resident(const std::string& pid, const std::set<std::string>& words) {
    std::ifstream status("/proc/" + pid + "/status");
    std::string word;
    unsigned long sum = 0;
    while (status >> word) {
        unsigned long kilobytes = 0;
        if (words.contains(word) && status >> kilobytes) sum += kilobytes;
    }
    return sum;
}

// Resident kB of anonymous memory.
inline unsigned long resident_memory(const std::string& pid) {
    return resident(pid, {"RssAnon:"});
}

}  // namespace wq::test
