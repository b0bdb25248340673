// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fstream>
#include <set>
#include <string>

namespace wq::test {

// kB of process PID ("self") that WORDS of its status tell of, together.
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

// Of files that it has mapped, and of memory that is in no file.
inline unsigned long resident_files(const std::string& pid) {
    return resident(pid, {"RssFile:", "RssShmem:"});
}
inline unsigned long resident_memory(const std::string& pid) {
    return resident(pid, {"RssAnon:"});
}

}  // namespace wq::test
