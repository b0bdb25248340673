// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/file.h"

namespace wq::bench {

// Controls the kernel's device mapper by its ioctls (linux/dm-ioctl.h). Does not use libdevmapper, because
// that has a System V semaphore for udev and makes nodes below /dev/mapper itself; both remain if the process
// is killed in between. Each call here makes one change in the kernel, or none. (systemd does the same.)
//
// A device is found by its UUID, so no call can affect a device of another program.
class DmControl {
  public:
    // Errors: ENOENT or ENODEV without a device mapper; EACCES, EPERM.
    static Result<DmControl> open(const std::string& root = "");

    // Whether the kernel has this kind of target; loads its module.
    [[nodiscard]] Result<bool> has_target(const std::string& type) const;
    // Creates a device without a table. Returns its number. Error: EBUSY if the name or UUID is in use.
    Result<dev_t> create(const std::string& name, const std::string& uuid) const;
    // Loads a table of one target. The kernel wipes PARAMETERS from its buffer, because they may contain a
    // key.
    Status load(const std::string& uuid, std::uint64_t sectors, const std::string& type,
                const std::string& parameters) const;
    Status resume(const std::string& uuid) const;
    // Removes the device at once, or when its last user closes it. No error if it does not exist.
    Status remove(const std::string& uuid) const;
    [[nodiscard]] Result<bool> exists(const std::string& uuid) const;

  private:
    explicit DmControl(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

}  // namespace wq::bench
