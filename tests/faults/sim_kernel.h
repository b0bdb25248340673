// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq::faults {

// Simulates the kernel for the files of a tree that the daemon writes. It refuses a word that is not a scope,
// takes a write as a whole, and shows `default (cache)` with the current module parameter. Only the first
// line of a file in the tree counts; the rest is left over from longer lines before.
class SimKernel {
  public:
    // PREFIXES: before 7.1 a scope's name was matched by its beginning (parse_affn_scope()).
    SimKernel(std::string root, bool prefixes) : root_(std::move(root)), prefixes_(prefixes) {}

    // Whether PATH is one of those files.
    [[nodiscard]] bool plays(const std::string& path) const;
    // What PATH shows now, with a newline at the end.
    [[nodiscard]] std::string show(const std::string& path) const;
    // Stores TEXT as if written to PATH, which is open as FD. Returns 0 or an errno. Makes one system call,
    // so that a kill cannot leave half of it.
    [[nodiscard]] int store(int fd, const std::string& path, const std::string& text) const;

  private:
    [[nodiscard]] std::string word_for(const std::string& text) const;
    std::string root_;
    bool prefixes_;
};

}  // namespace wq::faults
