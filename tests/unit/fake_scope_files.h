// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "machine/workqueue_fs.h"

namespace wq::test {

// The scope files of a kernel, in memory. Records the calls, and fails as the test sets.
class FakeScopeFiles : public ScopeFiles {
  public:
    struct File {
        ino_t inode = 1;
        std::string word = "default";
        bool strict = false;
    };
    std::map<std::string, File> files;
    bool prefixes = false;  // like kernels before 7.1: 'cache_shard' is stored as 'cache'

    // errno of the next calls of each kind; 0 or an empty list: the call succeeds.
    mutable std::deque<int> read_errors;
    mutable std::deque<int> read_strict_errors;
    std::deque<int> write_errors;
    std::deque<int> write_strict_errors;
    std::function<void()> before_write;  // called at the start of every write_scope()
    std::function<void()> after_write;   // called after it has written

    mutable std::vector<std::string> asked;  // "read a", "write a smt", "read strict a", "write strict a 1"

    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Result<bool> read_strict(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override;
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override;

    // Number of writes in `asked`.
    [[nodiscard]] std::size_t writes() const;

  private:
    [[nodiscard]] Status check(const std::string& name, ino_t inode, std::deque<int>& errors) const;
};

}  // namespace wq::test
