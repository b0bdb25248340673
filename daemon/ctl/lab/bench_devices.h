// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace wq::bench {

struct CryptDevice {
    std::string path;    // "/dev/dm-0"
    std::string number;  // "254:0", which is in the name of its workqueue
};

// Makes and removes the two devices of a benchmark. NAME is a result of new_name(), so devices of other
// programs do not have it. Removing a device that exists only in part, or not at all, is no error.
class Devices {
  public:
    Devices() = default;
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;
    virtual ~Devices() = default;

    // Whether the driver of the lower device is loaded.
    [[nodiscard]] virtual bool has_driver() const = 0;
    virtual Status load_driver() = 0;
    // Makes a device of BYTES that needs no memory, because it drops what is written. Returns its number,
    // "250:0".
    virtual Result<std::string> make_ram(const std::string& name, std::uint64_t bytes) = 0;
    // Makes a dm-crypt device over all BYTES of the device with the number RAM. Its random key is not kept
    // anywhere.
    virtual Result<CryptDevice> make_crypt(const std::string& name, const std::string& ram,
                                           std::uint64_t bytes) = 0;

    // Error: EBUSY if a process keeps it open longer than udev examines a device.
    virtual Status remove_crypt(const std::string& name) = 0;
    virtual Status remove_ram(const std::string& name) = 0;
    // Does nothing and returns true if another program has loaded the driver meanwhile. Returns false if it
    // is in use for longer than udev examines a device.
    virtual bool unload_driver() = 0;
};

}  // namespace wq::bench
