// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq::faults {

// The kernel behind the files of a tree that are ever written: it refuses what is no scope, takes a write as
// a whole, and shows `default (cache)`, where followers move with the module parameter. A file of the tree
// holds one line, what stands behind it is of longer ones before.
class SimKernel {
  public:
    // PREFIXES: before 7.1 a scope's name was matched by its beginning (parse_affn_scope()).
    SimKernel(std::string root, bool prefixes) : root_(std::move(root)), prefixes_(prefixes) {}

    // Whether PATH is one of those files.
    [[nodiscard]] bool plays(const std::string& path) const;
    // What PATH shows now, a newline at its end.
    [[nodiscard]] std::string show(const std::string& path) const;
    // Stores TEXT as written to PATH, open as FD. An errno, or 0. One system call, so that no kill halves it.
    [[nodiscard]] int store(int fd, const std::string& path, const std::string& text) const;

  private:
    [[nodiscard]] std::string word_for(const std::string& text) const;
    std::string root_;
    bool prefixes_;
};

}  // namespace wq::faults
