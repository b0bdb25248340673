// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/lab/bench_devices.h"

namespace wq::bench {

// Runs a command. Error: the command failed; the text says how.
using RunCommand = std::function<Status(const std::vector<std::string>& words)>;

// dm-crypt over null_blk, which drops what is written. null_blk makes or removes a single device by a folder
// of configfs, so other null_blk devices and /dev/ramN are not touched. In contrast, brd makes all of its
// devices when it is loaded, zram compresses, and a loop device has its own workqueues.
//
// Writes below /sys without WorkqueueFs, but only to the folder that it made.
class KernelDevices : public Devices {
  public:
    // ROOT: prefix of /sys and /dev. RUN: runs modprobe.
    KernelDevices(std::string root, RunCommand run) : root_(std::move(root)), run_(std::move(run)) {}

    [[nodiscard]] bool has_driver() const override;
    Status load_driver() override;
    Result<std::string> make_ram(const std::string& name, std::uint64_t bytes) override;
    Result<CryptDevice> make_crypt(const std::string& name, const std::string& ram,
                                   std::uint64_t bytes) override;
    Status remove_crypt(const std::string& name) override;
    Status remove_ram(const std::string& name) override;
    bool unload_driver() override;

  private:
    [[nodiscard]] std::string drivers_folder() const { return root_ + "/sys/kernel/config/nullb"; }

    std::string root_;
    RunCommand run_;
};

}  // namespace wq::bench
