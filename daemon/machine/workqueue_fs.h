// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/file.h"
#include "base/result.h"
#include "machine/paths.h"
#include "machine/workqueue.h"

namespace wq {

// The name for the mask of all unbound workqueues, /sys/devices/virtual/workqueue/cpumask. No workqueue has
// this name.
inline constexpr const char* kDefaultMask = "@default_mask";

// The cpumask of a workqueue or of kDefaultMask, read at one moment.
struct MaskFile {
    ino_t inode = 0;          // of the workqueue, as in Workqueue; for kDefaultMask: of the file
    CpuSet cpus;              // as last written; for kDefaultMask: `cpumask_requested`, if it exists
    CpuSet effective;         // for kDefaultMask: `cpumask`, without isolated CPUs; else equal to `cpus`
    std::string text;         // the text of `cpus` in the file, without the line end
    std::string untouchable;  // why it must not be written; empty if it may be
    CpuSet isolated = {};     // for kDefaultMask: CPUs that the kernel itself removes from `cpumask`
};

// The files of workqueues and of the module parameter that can be written. NAME is a workqueue's name, or
// kDefaultTarget (a scope alone), or kDefaultMask (a mask alone). A call with an INODE fails with ENODEV if
// the target no longer has it; all fail with ENOENT if the target does not exist. A write is one write(2).
//
// Masks, kernel/workqueue.c: wq_cpumask_store() keeps only the possible CPUs of a mask; an empty one means
// the mask of all unbound workqueues, which itself must not be empty (EINVAL). Since 6.8 the kernel removes
// isolated CPUs from `cpumask`, while `cpumask_requested` keeps the written mask and gives MaskFile::cpus.
class WorkqueueFiles {
  public:
    virtual ~WorkqueueFiles() = default;
    // Names of all workqueues, sorted. kDefaultTarget comes first if the kernel has that parameter.
    [[nodiscard]] virtual Result<std::vector<std::string>> names() const = 0;
    [[nodiscard]] virtual Result<ScopeFile> read_scope(const std::string& name, ino_t inode) const = 0;
    [[nodiscard]] virtual Result<bool> read_strict(const std::string& name, ino_t inode) const = 0;
    // Error EINVAL: the file is not a mask.
    [[nodiscard]] virtual Result<MaskFile> read_mask(const std::string& name) const = 0;
    // WORD is a scope's name or "default".
    [[nodiscard]] virtual Status write_scope(const std::string& name, ino_t inode,
                                             const std::string& word) = 0;
    [[nodiscard]] virtual Status write_strict(const std::string& name, ino_t inode, bool strict) = 0;
    // TEXT: hex words as in the kernel's mask files.
    [[nodiscard]] virtual Status write_mask(const std::string& name, ino_t inode,
                                            const std::string& text) = 0;
    // What `ab` and `bench` put in place besides; see ctl/lab/lab.h.
    [[nodiscard]] virtual Result<std::string> read_value(const std::string& name, ino_t /*inode*/) const {
        return fail_errno(name, ENOTSUP);
    }
    [[nodiscard]] virtual Status write_value(const std::string& name, ino_t /*inode*/,
                                             const std::string& /*text*/) {
        return fail_errno(name, ENOTSUP);
    }
    // Whoever writes calls it before, but not between the reads and the writes whose time is measured.
    std::function<void()> about_to_write = [] {};
};

// /sys/devices/virtual/workqueue and the module parameter. This is the only code that writes scope files and
// masks. Only owned/writer.h calls its write functions.
//
// A workqueue can disappear between any two calls; a call then fails with ENOENT or ENODEV. A write goes
// through the opened directory whose inode was checked: a new workqueue that reuses the name is never
// written.
class WorkqueueFs : public WorkqueueFiles {
  public:
    explicit WorkqueueFs(Paths paths) : paths_(std::move(paths)) {}

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
    [[nodiscard]] Status write_scope(const std::string& name, ino_t inode, const std::string& word) override {
        return write(name, inode, "affinity_scope", word + "\n");
    }
    [[nodiscard]] Status write_strict(const std::string& name, ino_t inode, bool strict) override {
        return write(name, inode, "affinity_strict", strict ? "1\n" : "0\n");
    }

    [[nodiscard]] Result<MaskFile> read_mask(const std::string& name) const override;
    [[nodiscard]] Status write_mask(const std::string& name, ino_t inode, const std::string& text) override {
        return write(name, inode, "cpumask", text + "\n");
    }

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
