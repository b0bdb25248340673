// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/bench/bench_devices.h"

namespace wq::bench {

// Runs a command. Error: it failed, with how.
using RunCommand = std::function<Status(const std::vector<std::string>& words)>;

// dm-crypt over null_blk, which drops what is written. null_blk makes and removes one device at a time, by a
// folder of configfs: /dev/ramN and other null_blk devices are not touched. brd makes all of its devices when
// it is loaded, zram compresses, and a loop device has workqueues of its own.
//
// Beside WorkqueueFs, this writes below /sys: only to the folder that it made.
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
