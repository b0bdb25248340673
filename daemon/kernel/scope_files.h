// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <string>

#include "model/scope.h"

namespace wq {

// The two files that set a target's scope (for masks see kernel/mask_files.h). NAME is a workqueue's name or
// kDefaultTarget, which has no strict file. Every call fails with ENODEV if the target no longer has INODE,
// and with ENOENT if the target does not exist.
class ScopeFiles {
  public:
    virtual ~ScopeFiles() = default;
    [[nodiscard]] virtual Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const = 0;
    [[nodiscard]] virtual Result<bool> read_strict(const std::string& name, ino_t inode) const = 0;
    // One write(2). WORD is a scope's name or "default".
    [[nodiscard]] virtual Status write_scope(const std::string& name, ino_t inode,
                                             const std::string& word) = 0;
    [[nodiscard]] virtual Status write_strict(const std::string& name, ino_t inode, bool strict) = 0;
};

}  // namespace wq
