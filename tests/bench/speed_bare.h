// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace wq::test {

// What setting 1,000 targets takes, without thinking: loops of system calls and nothing else, as in C.
// FOLDERS are those of the workqueues, without their parents'; they end on `smt`. Any call that fails ends
// the program.

// The calls of the daemon, in its order: each target is read (its folder checked to be the one that was
// meant, each file to its end), and then compared, written and read back; TEXT is saved to PATH before the
// first write.
void bare_same(const std::string& parent, const std::vector<std::string>& folders, const std::string& text,
               const std::string& path);

// The fewest that read each file once, write, and read back. Nothing is saved.
void bare_least(const std::string& parent, const std::vector<std::string>& folders);

// The calls of one look of the daemon.
void bare_look(const std::string& parent, const std::vector<std::string>& folders);

}  // namespace wq::test
