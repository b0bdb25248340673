// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ctl/lab/runner.h"

namespace wq::lab {

struct CryptDevice {
    std::string path;    // "/dev/dm-0"
    std::string number;  // "254:0", which is in the name of its workqueue
};

// Returns a new random name for devices: "wq-bench-0123456789abcdef".
std::string new_device_name();
// Whether NAME may be such a name.
bool is_device_name(const std::string& name);

// Runs a command. Error: the command failed; the text says how.
using RunCommand = std::function<Status(const std::vector<std::string>& words)>;

// Runs them with PROCESSES; no signal ends them.
RunCommand runs(const Processes& processes);

// Makes and removes the two devices of a benchmark: dm-crypt over null_blk, which drops what is written, and
// which makes a single device by a folder of configfs. (brd makes all of its devices when it is loaded, zram
// compresses, and a loop device has its own workqueues.) NAME is a result of new_device_name(), so devices of
// other programs do not have it. Removing a device that exists only in part, or not at all, is no error.
class Devices {
  public:
    // ROOT: prefix of /sys and /dev. RUN: runs modprobe.
    Devices(std::string root, RunCommand run) : root_(std::move(root)), run_(std::move(run)) {}
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;
    virtual ~Devices() = default;

    // Whether the driver of the lower device is loaded.
    [[nodiscard]] virtual bool has_driver() const;
    virtual Status load_driver();
    // Makes a device of BYTES and returns its number, "250:0".
    virtual Result<std::string> make_ram(const std::string& name, std::uint64_t bytes);
    // Over all BYTES of the device with the number RAM. Its random key is not kept anywhere.
    virtual Result<CryptDevice> make_crypt(const std::string& name, const std::string& ram,
                                           std::uint64_t bytes);

    // Error: EBUSY if a process keeps it open longer than udev examines a device.
    virtual Status remove_crypt(const std::string& name);
    virtual Status remove_ram(const std::string& name);
    // False if it is in use for longer than udev examines a device. What another program loaded stays.
    virtual bool unload_driver();

  private:
    [[nodiscard]] std::string drivers_folder() const { return root_ + "/sys/kernel/config/nullb"; }

    std::string root_;
    RunCommand run_;
};

}  // namespace wq::lab
