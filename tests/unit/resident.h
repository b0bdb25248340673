// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fstream>
#include <string>

namespace wq::test {

// kB of files that process PID ("self") has mapped and resident.
inline unsigned long resident_files(const std::string& pid) {
    std::ifstream status("/proc/" + pid + "/status");
    std::string word;
    unsigned long sum = 0;
    while (status >> word) {
        unsigned long kilobytes = 0;
        if ((word == "RssFile:" || word == "RssShmem:") && status >> kilobytes) sum += kilobytes;
    }
    return sum;
}

}  // namespace wq::test
