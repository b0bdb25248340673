// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace wq::test {

// The work of setting 1,000 targets, without decisions: loops of system calls and nothing else, as in C.
// FOLDERS are the names of the workqueues' folders in PARENT. All targets get `smt`. A call that fails ends
// the program.

// The calls of the daemon, in its order: reads each target (checks that its folder is the right one, reads
// each file to its end), saves TEXT to PATH, and then compares, writes and reads back each target.
void bare_same(const std::string& parent, const std::vector<std::string>& folders, const std::string& text,
               const std::string& path);

}  // namespace wq::test
