// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "kernel/mask_files.h"
#include "kernel/paths.h"
#include "kernel/scope_files.h"
#include "model/workqueue.h"

namespace wq {

// /sys/devices/virtual/workqueue and the module parameter. This is the only code that writes scope files and
// masks. Only engine/scope_writer.h and engine/mask_writer.h call its write functions.
//
// A workqueue can disappear between any two calls; a call then fails with ENOENT or ENODEV. A write goes
// through the opened directory whose inode was checked. So if a new workqueue reuses the name (dm-crypt does
// this), it is never written with data read from the old one.
class WorkqueueFs : public ScopeFiles, public MaskFiles {
  public:
    explicit WorkqueueFs(Paths paths) : paths_(std::move(paths)) {}

    // Names of all workqueues in sysfs, sorted. kDefaultTarget comes first if the kernel has that parameter.
    // A missing workqueue folder is not an error: the list is empty.
    [[nodiscard]] Result<std::vector<std::string>> names() const override;

    // The CPUs that unbound workqueues may use; empty if they cannot be read.
    [[nodiscard]] CpuSet unbound_mask() const;

    // Reads everything about one target. An invalid file makes the target untouchable and gives the reason.
    // UNBOUND_MASK is the same for all targets, so a caller that reads many targets reads it once.
    [[nodiscard]] Result<Workqueue> read(const std::string& name, const CpuSet& unbound_mask) const;
    [[nodiscard]] Result<Workqueue> read(const std::string& name) const { return read(name, unbound_mask()); }

    [[nodiscard]] Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Result<bool> read_strict(const std::string& name, ino_t inode) const override;
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override;
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override;

    [[nodiscard]] Result<MaskFile> read_mask(const std::string& name) const override;
    [[nodiscard]] Status write_mask(const std::string& name, ino_t inode, const std::string& text) override;

    // Number of successful writes to /sys since construction. `status` shows it, so that the user can see
    // that nothing was written.
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
    // Converts ERROR of a file of NAME: a "gone" error becomes a temporary one if the workqueue still
    // exists.
    [[nodiscard]] Error unless_there(const Error& error, const std::string& name, ino_t inode) const;
    [[nodiscard]] Status write(const std::string& name, ino_t inode, const char* file,
                               const std::string& text);

    Paths paths_;
    unsigned writes_ = 0;
};

}  // namespace wq
