// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "kernel/paths.h"
#include "kernel/scope_files.h"
#include "model/workqueue.h"

namespace wq {

// /sys/devices/virtual/workqueue and the module parameter: the only place that writes to /sys.
//
// A workqueue can vanish between any two calls: every call then fails with ENOENT or ENODEV. Writes go
// through the directory that was checked to have the expected inode, so that a workqueue that took over the
// name of another (dm-crypt does) is never written on the strength of what was read of its predecessor.
class WorkqueueFs : public ScopeFiles {
  public:
    explicit WorkqueueFs(Paths paths) : paths_(std::move(paths)) {}

    // Names of all workqueues in sysfs, sorted, with kDefaultTarget first where the kernel has that
    // parameter. No workqueue folder at all is not an error: the list is empty.
    [[nodiscard]] Result<std::vector<std::string>> names() const;

    // The CPUs that unbound workqueues may use; empty where that cannot be read.
    [[nodiscard]] CpuSet unbound_mask() const;

    // Everything about one target. A file that is absurd makes the target untouchable, with the reason.
    // UNBOUND_MASK is the same for all targets: who reads many reads it once.
    [[nodiscard]] Result<Workqueue> read(const std::string& name, const CpuSet& unbound_mask) const;
    [[nodiscard]] Result<Workqueue> read(const std::string& name) const { return read(name, unbound_mask()); }

    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Result<bool> read_strict(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override;
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override;

    // Successful writes to /sys since construction. Shown in status, so that "nothing was written" can be
    // seen.
    [[nodiscard]] unsigned writes() const { return writes_; }

  private:
    struct Folder {
        Fd fd;
        ino_t inode = 0;
        const char* scope_file = "affinity_scope";
    };
    [[nodiscard]] Result<Folder> look_for_folder(const std::string& name) const;
    [[nodiscard]] Result<Folder> open_folder(const std::string& name) const;
    [[nodiscard]] Result<Folder> open_same(const std::string& name, ino_t inode) const;
    // ERROR of a file of NAME: one that says "gone" of a workqueue that is there becomes one that passes.
    [[nodiscard]] Error unless_there(const Error& error, const std::string& name, ino_t inode) const;
    [[nodiscard]] Status write(const std::string& name, ino_t inode, const char* file,
                               const std::string& text);

    Paths paths_;
    unsigned writes_ = 0;
};

}  // namespace wq
