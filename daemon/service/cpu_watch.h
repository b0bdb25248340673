// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/file.h"
#include "machine/paths.h"

namespace wq {

// Polls for changes of CPUs that send no uevent.
class CpuWatch {
  public:
    explicit CpuWatch(const Paths& paths) : paths_(paths) {}

    // Call it once, before the other functions.
    void start();
    // Whether the machine was suspended since the last call. A suspend takes CPUs offline and online again.
    [[nodiscard]] bool was_suspended();
    // Whether the online, present, possible or isolated CPUs changed since the last call. Without udev, no
    // event reports this.
    [[nodiscard]] bool changed();

  private:
    const Paths& paths_;
    std::int64_t suspended_ = 0;  // ns suspended since boot
    std::string cpus_;            // result of cpu_state()
};

// Detects a change of the hostname. On a real machine the kernel reports it (proc_sys_poll() wakes pollers of
// the file). The file of a test's tree cannot be polled, so changed() must be called from time to time.
class HostnameWatch {
  public:
    explicit HostnameWatch(const Paths& paths) : paths_(paths) {}
    HostnameWatch(const HostnameWatch&) = delete;
    HostnameWatch& operator=(const HostnameWatch&) = delete;
    ~HostnameWatch();

    // Calls WOKEN in EVENT's loop when the name may have changed.
    void start(sd_event* event, std::function<void()> woken);
    // Returns the name if it changed since the last call, or since start() at the first call.
    [[nodiscard]] std::optional<std::string> changed();

  private:
    static int on_change(sd_event_source* source, int fd, std::uint32_t events, void* self);

    const Paths& paths_;
    Fd file_;
    sd_event_source* source_ = nullptr;
    std::string name_;
    std::function<void()> woken_;
};

}  // namespace wq
