// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine/workqueue_fs.h"
#include "temp_tree.h"

namespace wq::test {

// The real WorkqueueFs on a temporary tree with a fake kernel: a written word reads back as a kernel shows it
// (`default (cache)`), workqueues on `default` follow the module parameter, and calls fail as the test sets.
class FakeKernel : public WorkqueueFs {
  public:
    explicit FakeKernel(TempTree& tree) : WorkqueueFs(Paths{tree.root()}), tree_(tree) {}

    bool prefixes = false;  // like kernels before 7.1: 'cache_shard' is stored as 'cache'
    // Called before each write or read of a scope. If it returns an errno, the call fails with it.
    std::function<int(const std::string& name, const std::string& word)> on_write;
    std::function<int(const std::string& name)> on_read;
    std::function<int(const std::string& name)> on_write_strict;  // the same for writes of the strictness
    std::vector<std::string> asked;  // "kcryptd=smt", "kcryptd strict=1": every write, including failed ones

    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override;
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override;

  private:
    void show_defaults();
    TempTree& tree_;
};

}  // namespace wq::test
