// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// The name for the mask of all unbound workqueues, /sys/devices/virtual/workqueue/cpumask. No workqueue has
// this name.
inline constexpr const char* kDefaultMask = "@default_mask";

// The cpumask of a workqueue or of kDefaultMask, read at one moment.
struct MaskFile {
    ino_t inode = 0;   // of the workqueue, as in Workqueue; of the file for kDefaultMask
    CpuSet cpus;       // as it was written: of kDefaultMask, what `cpumask_requested` has
    CpuSet effective;  // of kDefaultMask, what `cpumask` has: `cpus` without isolated ones; else as `cpus`
    std::string text;  // of `cpus`, as the file has it, without the line end
    std::string untouchable;  // why it must not be written; empty if it may
    CpuSet isolated = {};     // of kDefaultMask: those that the kernel leaves out of `cpumask` of its own
};

// The files of masks. Comparing is for CPUs: the kernel pads the text as it likes.
//
// kernel/workqueue.c: wq_cpumask_store() keeps the possible CPUs of what is written, and does so for an empty
// mask, too, which then means the mask of all unbound workqueues. workqueue_set_unbound_cpumask() refuses an
// empty one (EINVAL), and does not leave out isolated CPUs. Since 6.8 workqueue_unbound_exclude_cpumask()
// takes them out of `cpumask` whenever a cpuset partition changes, and `cpumask_requested` keeps what was
// written: where that file exists it is read in place of `cpumask`.
class MaskFiles {
  public:
    virtual ~MaskFiles() = default;
    // As WorkqueueFs::names() has them.
    [[nodiscard]] virtual Result<std::vector<std::string>> names() const = 0;
    // Errors: ENOENT and ENODEV if the workqueue does not exist, EINVAL if the file has no mask.
    [[nodiscard]] virtual Result<MaskFile> read_mask(const std::string& name) const = 0;
    // One write(2) of TEXT, hex words as in the kernel's mask files. Fails with ENODEV if NAME no longer has
    // INODE.
    [[nodiscard]] virtual Status write_mask(const std::string& name, ino_t inode,
                                            const std::string& text) = 0;
};

}  // namespace wq
