// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace wq::bench {

// The kernel's device mapper, by its ioctls (linux/dm-ioctl.h). Not by libdevmapper: that keeps a System V
// semaphore for udev and makes nodes below /dev/mapper by itself, and both outlive a process that is killed
// in between. Each call here changes one thing in the kernel, or nothing. (systemd does the same.)
//
// A device is found by its UUID, so no call can reach a device of somebody else.
class DmControl {
  public:
    // Errors: ENOENT, ENODEV without a device mapper; EACCES, EPERM.
    static Result<DmControl> open(const std::string& root = "");

    // Whether the kernel has this kind of target; loads its module.
    [[nodiscard]] Result<bool> has_target(const std::string& type) const;
    // A device without a table. Returns its number. Error: EBUSY, the name or UUID is taken.
    Result<dev_t> create(const std::string& name, const std::string& uuid) const;
    // A table of one target. PARAMETERS are wiped from the kernel's buffer: they may have a key.
    Status load(const std::string& uuid, std::uint64_t sectors, const std::string& type,
                const std::string& parameters) const;
    Status resume(const std::string& uuid) const;
    // At once, or when the last one has closed it. No error if there is none.
    Status remove(const std::string& uuid) const;
    [[nodiscard]] Result<bool> exists(const std::string& uuid) const;

  private:
    explicit DmControl(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

}  // namespace wq::bench
