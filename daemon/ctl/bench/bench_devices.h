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

// Makes and removes the two devices of a benchmark. NAME is one of ours: nothing of anybody else's has it.
// What is removed may be partly there, or not at all: that is no error.
class Devices {
  public:
    Devices() = default;
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;
    virtual ~Devices() = default;

    // Whether the driver of the device below is loaded.
    [[nodiscard]] virtual bool has_driver() const = 0;
    virtual Status load_driver() = 0;
    // A device of BYTES that costs nothing: it drops what is written. Returns its number, "250:0".
    virtual Result<std::string> make_ram(const std::string& name, std::uint64_t bytes) = 0;
    // A dm-crypt device over all BYTES of the device with the number RAM, with a random key that nobody
    // keeps.
    virtual Result<CryptDevice> make_crypt(const std::string& name, const std::string& ram,
                                           std::uint64_t bytes) = 0;

    // Error: EBUSY if somebody has it open for longer than udev looks at it.
    virtual Status remove_crypt(const std::string& name) = 0;
    virtual Status remove_ram(const std::string& name) = 0;
    // It stays if it is somebody else's by now. False: somebody uses it, for longer than udev looks at a
    // device.
    virtual bool unload_driver() = 0;
};

}  // namespace wq::bench
