// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <linux/dm-ioctl.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "machine/paths.h"

namespace wq {

// The kernel's device mapper by its ioctls (linux/dm-ioctl.h). Does not use libdevmapper, because that has a
// System V semaphore for udev and makes nodes below /dev/mapper itself; both remain if the process is killed
// in between. Each call here makes one change in the kernel, or none. (systemd does the same.)

// The argument of an ioctl: struct dm_ioctl and the data after it. Wiped, because it may contain a key.
class MapperRequest {
  public:
    static constexpr std::size_t kRoom = 4096;  // bytes, for a target and its parameters, or for an answer

    explicit MapperRequest(const std::string& uuid);
    ~MapperRequest();
    MapperRequest(const MapperRequest&) = delete;
    MapperRequest& operator=(const MapperRequest&) = delete;

    dm_ioctl& head() { return *reinterpret_cast<dm_ioctl*>(words_.data()); }
    void set_name(const std::string& name);
    void set_target(std::uint64_t sectors, const std::string& type, const std::string& parameters);
    // Error: "device mapper: DOING: ...".
    Status call(const Fd& fd, unsigned long what, const char* doing);
    // The data after struct dm_ioctl.
    [[nodiscard]] std::string_view answer() const;

  private:
    std::vector<std::uint64_t> words_;  // 64-bit words, to align the structures
};

// Errors: ENOENT or ENODEV without a device mapper; EACCES, EPERM.
Result<Fd> open_mapper(const std::string& root);

// What keeps the work of a dm-crypt mapping off its workqueue (drivers/md/dm-crypt.c, kcryptd_queue_crypt()).
struct CryptBypass {
    bool reads = false;   // no_read_workqueue
    bool writes = false;  // no_write_workqueue
    bool submit = false;  // submit_from_crypt_cpus

    // The names of the options that are set.
    [[nodiscard]] std::vector<std::string> options() const;
    // What this means for the workqueue, in sentences; "" if nothing bypasses it.
    [[nodiscard]] std::string text() const;
    friend bool operator==(const CryptBypass&, const CryptBypass&) = default;
};

// "254:0" for the workqueue "kcryptd-254:0-1"; "" for all others.
std::string crypt_device_of(std::string_view workqueue);
// From what the kernel tells about a mapping, for a measurement: "...,no_read_workqueue=y,...".
CryptBypass bypass_in(std::string_view target);
// The bypass of the mapping with the number DEVICE, "254:0". Asks for what IMA would measure, in which there
// is no key (since Linux 5.15). Error: EACCES for all but root, ENXIO without such a device.
Result<CryptBypass> read_crypt_bypass(const Paths& paths, const std::string& device);

}  // namespace wq
