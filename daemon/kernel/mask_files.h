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
    ino_t inode = 0;          // of the workqueue, as in Workqueue; for kDefaultMask: of the file
    CpuSet cpus;              // as last written; for kDefaultMask: `cpumask_requested`, if it exists
    CpuSet effective;         // for kDefaultMask: `cpumask`, without isolated CPUs; else equal to `cpus`
    std::string text;         // the text of `cpus` in the file, without the line end
    std::string untouchable;  // why it must not be written; empty if it may be
    CpuSet isolated = {};     // for kDefaultMask: CPUs that the kernel itself removes from `cpumask`
};

// The mask files. Compare masks as sets of CPUs, not as text, because the kernel's zero padding varies.
//
// kernel/workqueue.c: wq_cpumask_store() keeps only the possible CPUs of the written mask. It also accepts an
// empty mask, which then means the mask of all unbound workqueues. workqueue_set_unbound_cpumask() rejects an
// empty mask (EINVAL) and does not remove isolated CPUs. Since 6.8, workqueue_unbound_exclude_cpumask()
// removes them from `cpumask` whenever a cpuset partition changes, while `cpumask_requested` keeps the
// written mask. If that file exists, it gives MaskFile::cpus.
class MaskFiles {
  public:
    virtual ~MaskFiles() = default;
    // Like WorkqueueFs::names().
    [[nodiscard]] virtual Result<std::vector<std::string>> names() const = 0;
    // Errors: ENOENT and ENODEV if the workqueue does not exist, EINVAL if the file is not a mask.
    [[nodiscard]] virtual Result<MaskFile> read_mask(const std::string& name) const = 0;
    // One write(2) of TEXT, hex words as in the kernel's mask files. Fails with ENODEV if NAME no longer has
    // INODE.
    [[nodiscard]] virtual Status write_mask(const std::string& name, ino_t inode,
                                            const std::string& text) = 0;
};

}  // namespace wq
